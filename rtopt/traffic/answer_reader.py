"""Takes a streamed HTTP answer apart: status, and the events as they become complete."""

_MAX_HEAD = 65_536


class WireError(Exception):
    """The answer is no HTTP/1.1 that we understand."""


class AnswerReader:
    """One answer, fed in pieces of any size; the events do not depend on how it was cut."""

    # in:   HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n
    #       1c\r\ndata: {"choices":[...]}\n\n\r\n0\r\n\r\n
    # out:  one event, {"choices":[...]}

    def __init__(self) -> None:
        self.status: int | None = None
        self.is_done = False
        self.keeps_open = False
        """After this answer the connection may be used again."""
        self.body = bytearray()
        """What came and is no complete event; the whole of an answer that is no stream."""
        self._raw = bytearray()
        self._is_chunked = False
        self._is_stream = False
        self._left: int | None = None
        """Bytes to come: of the chunk, or of the body; None: until the connection ends."""
        self._is_last = False

    def feed(self, data: bytes) -> list[bytes]:
        """Events that this piece completed.

        Raises:
            WireError: Not an answer that we understand.
        """
        self._raw += data
        if self.status is None and not self._read_head():
            return []
        if self._is_chunked:
            self._read_chunks()
        else:
            self._read_plain()
        return self._events()

    def finish(self) -> None:
        """The connection ended.

        Raises:
            WireError: It ended before the answer did.
        """
        if self.is_done:
            return
        if self.status is None or self._is_chunked or self._left is not None:
            raise WireError("the server hung up before the end of its answer")
        self.is_done = True

    def _read_head(self) -> bool:
        end = self._raw.find(b"\r\n\r\n")
        if end < 0:
            if len(self._raw) > _MAX_HEAD:
                raise WireError("the head of the answer does not end")
            return False
        first, *lines = bytes(self._raw[:end]).split(b"\r\n")
        del self._raw[: end + 4]
        words = first.split(b" ", 2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise WireError("the answer does not begin as HTTP/1.1 does")
        status = int(words[1])
        if status == 100:
            return self._read_head()
        heads = dict(_header(line) for line in lines)
        self._is_chunked = heads.get(b"transfer-encoding", b"").lower() == b"chunked"
        if self._is_chunked:
            self._left = 0
        elif (length := heads.get(b"content-length")) is not None:
            self._left = _number(length, 10)
        self._is_stream = heads.get(b"content-type", b"").startswith(b"text/event-stream")
        self.keeps_open = (
            words[0] == b"HTTP/1.1"
            and heads.get(b"connection", b"").lower() != b"close"
            and self._left is not None
        )
        self.status = status
        return True

    def _read_plain(self) -> None:
        if self._left is None:
            self.body += self._raw
            self._raw.clear()
            return
        part = self._raw[: self._left]
        self.body += part
        self._left -= len(part)
        del self._raw[: len(part)]
        self.is_done = self._left == 0

    def _read_chunks(self) -> None:
        while not self.is_done:
            if self._left:
                # The line break after a chunk is counted with it.
                part = self._raw[: self._left]
                del self._raw[: len(part)]
                self.body += part[: max(0, self._left - 2)]
                self._left -= len(part)
                if self._left:
                    return
            end = self._raw.find(b"\r\n")
            if end < 0:
                if len(self._raw) > _MAX_HEAD:
                    raise WireError("the length of a chunk does not end")
                return
            line = bytes(self._raw[:end])
            del self._raw[: end + 2]
            if self._is_last:
                self.is_done = line == b""
                continue
            size = _number(line.partition(b";")[0], 16)
            self._left = size + 2 if size else 0
            self._is_last = size == 0

    def _events(self) -> list[bytes]:
        if self.status != 200 or not self._is_stream:
            return []
        *lines, rest = self.body.split(b"\n")
        if not lines:
            return []
        self.body = rest
        return [bytes(line[5:]).strip() for line in lines if line.startswith(b"data:")]


def _header(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _number(text: bytes, base: int) -> int:
    try:
        found = int(text.strip().decode("ascii"), base)
    except ValueError:
        raise WireError("a length in the answer is no number") from None
    if found < 0:
        raise WireError("a length in the answer is below 0")
    return found
