"""docs/support.md says what its data say, and the probe finds names where they are."""

import json

from tools.support_table import DATA, FEATURES, FILE, features_of, page


def test_the_page_is_made_from_its_data() -> None:
    assert FILE.read_text(encoding="utf-8") == page(json.loads(DATA.read_text(encoding="utf-8")))


def test_the_data_know_every_feature_of_every_version() -> None:
    versions = json.loads(DATA.read_text(encoding="utf-8"))["versions"]
    assert all(having is None or set(having) == set(FEATURES) for having in versions.values())


def test_a_feature_is_found_as_a_field_a_method_an_attribute_or_a_text() -> None:
    found = features_of(
        {
            "a.py": "class ProfilerConfig:\n    torch_profiler_dir: str = ''\n",
            "b.py": "class AsyncMPClient:\n    async def call_utility_async(self): ...\n",
            "c.py": "class Scheduler:\n    def f(self):\n        self.max_num_active_reqs = 1\n",
            "d.py": "GROUP = 'vllm.general_plugins'\n",
        }
    )
    assert {name for name, is_there in found.items() if is_there} == {
        "torch profiler",
        "utility calls",
        "max_num_active_seqs",
        "general plug-ins",
    }


def test_the_same_name_in_another_class_is_not_the_feature() -> None:
    found = features_of({"a.py": "class Other:\n    max_num_active_reqs: int = 1\n"})
    assert not any(found.values())
