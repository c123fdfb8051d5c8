import pytest

from rtopt.engines.prometheus import difference, parse_scrape

PAGE = """\
# HELP process_start_time_seconds Start time of the process since unix epoch in seconds.
# TYPE process_start_time_seconds gauge
process_start_time_seconds 1.79607e+09
# TYPE http_requests_total counter
http_requests_total{handler="/v1/completions"} 7.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 3.0
vllm:num_requests_running{engine="1",model_name="m"} 2.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.5
vllm:kv_cache_usage_perc{engine="1",model_name="m"} 0.25
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="m"} 120.0
vllm:generation_tokens_total{engine="1",model_name="m"} 80.0
# TYPE vllm:generation_tokens_created gauge
vllm:generation_tokens_created{engine="0",model_name="m"} 1.79e+09
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="m"} 4.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="m"} 5.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1",model_name="m"} 12.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="m"} 15.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 15.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 1.5
# TYPE vllm:odd gauge
vllm:odd{engine="0"} NaN
# TYPE vllm:cache_config_info gauge
vllm:cache_config_info{block_size="128",engine="0",num_gpu_blocks="364"} 1.0
"""


def test_labels_fall_away_and_the_bucket_stays() -> None:
    assert parse_scrape(PAGE).series == {
        "vllm:num_requests_running": 5.0,
        "vllm:kv_cache_usage_perc": 0.375,
        "vllm:generation_tokens_total": 200.0,
        "vllm:request_success_total": 9.0,
        'vllm:time_to_first_token_seconds_bucket{le="0.1"}': 12.0,
        'vllm:time_to_first_token_seconds_bucket{le="+Inf"}': 15.0,
        "vllm:time_to_first_token_seconds_count": 15.0,
        "vllm:time_to_first_token_seconds_sum": 1.5,
    }


def test_the_server_is_told_by_labels_and_its_start() -> None:
    page = parse_scrape(PAGE)
    assert page.start_s == 1.79607e9
    assert page.model == "m"
    assert page.num_engines == 2
    assert page.cache_config["num_gpu_blocks"] == "364"


def test_another_programs_page_has_no_series() -> None:
    assert parse_scrape("# TYPE up gauge\nup 1\n").series == {}


def test_what_is_no_page_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_scrape("<html><body>hello</body></html>")


def test_two_pages_of_one_server_differ_in_nothing_that_matters() -> None:
    before = parse_scrape(PAGE)
    after = parse_scrape(PAGE.replace(" 120.0", " 150.0").replace(" 3.0", " 1.0"))
    assert difference(before, after) is None
    assert (
        difference(
            before,
            parse_scrape(
                PAGE.replace(
                    '_sum{engine="0",model_name="m"} 1.5',
                    '_sum{engine="0",model_name="m"} 1.4999999999',
                )
            ),
        )
        is None
    )


def test_a_counter_that_falls_is_another_process() -> None:
    after = parse_scrape(PAGE.replace(" 120.0", " 100.0"))
    assert "vllm:generation_tokens_total fell from 200 to 180" in str(
        difference(parse_scrape(PAGE), after)
    )


def test_another_start_is_another_process() -> None:
    after = parse_scrape(PAGE.replace("1.79607e+09", "1.79608e+09"))
    assert "start time" in str(difference(parse_scrape(PAGE), after))
