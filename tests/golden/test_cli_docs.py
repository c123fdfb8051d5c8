from tools.cli_docs import FILE, page


def test_docs_cli_md_says_what_help_says() -> None:
    assert FILE.read_text(encoding="utf-8") == page(), "run: make generated"
