"""One request and its streamed answer: bytes to send, and events as they become complete."""

import h11


class WireError(Exception):
    """The answer is no HTTP/1.1 that we understand."""


class Exchange:
    """Fed in pieces of any size; the events do not depend on how the answer was cut."""

    # in:   HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n
    #       1c\r\ndata: {"choices":[...]}\n\n\r\n0\r\n\r\n
    # out:  one event, {"choices":[...]}

    def __init__(self, request: h11.Request, body: bytes) -> None:
        self._wire = h11.Connection(our_role=h11.CLIENT)
        parts = (request, h11.Data(data=body), h11.EndOfMessage())
        self.message = b"".join(self._wire.send(part) or b"" for part in parts)
        """What to send."""
        self.status: int | None = None
        self.is_done = False
        self.body = bytearray()
        """What came and is no complete event; the whole of an answer that is no stream."""
        self._is_stream = False

    @property
    def keeps_open(self) -> bool:
        """Whether the connection may be used again after this answer."""
        is_over = self._wire.our_state is h11.DONE and self._wire.their_state is h11.DONE
        return is_over and not self._wire.trailing_data[0]

    def feed(self, data: bytes) -> list[bytes]:
        """Events that this piece completed.

        Raises:
            WireError: Not an answer that we understand.
        """
        if data:
            self._read(data)
        return self._events()

    def finish(self) -> None:
        """The connection ended.

        Raises:
            WireError: It ended before the answer did.
        """
        if not self.is_done:
            self._read(b"")
        if not self.is_done:
            raise WireError("the server hung up before its answer")

    def _read(self, data: bytes) -> None:
        try:
            self._wire.receive_data(data)
            while not self.is_done:
                match self._wire.next_event():
                    case h11.Response() as head:
                        self.status = head.status_code
                        kinds = [value for name, value in head.headers if name == b"content-type"]
                        self._is_stream = bool(kinds) and kinds[0].startswith(b"text/event-stream")
                    case h11.Data() as piece:
                        self.body += piece.data
                    case h11.EndOfMessage():
                        self.is_done = True
                    case h11.InformationalResponse():
                        pass
                    case _:  # it needs more, or the connection ended
                        return
        except h11.RemoteProtocolError as error:
            told = str(error) if data else "the server hung up before the end of its answer"
            raise WireError(told) from error

    def _events(self) -> list[bytes]:
        if self.status != 200 or not self._is_stream:
            return []
        *lines, rest = self.body.split(b"\n")
        if not lines:
            return []
        self.body = rest
        return [bytes(line[5:]).strip() for line in lines if line.startswith(b"data:")]
