"""The benchmark of tokens counts the sent prompts, and prints each metric with its goal."""

from support.packets import FILES, tool

from benchmarks.tokens.counting import count, openai_tools
from benchmarks.tokens.packetgate import in_full
from packetgate.tools.catalogue.catalogue import Catalogue

MAIL = tool("post.send_mail", "to", to={"type": "string", "description": "Who gets it."}, description="Send a mail.")


def test_the_tokens_of_the_full_catalogue_match_a_count_by_hand():
    one = Catalogue([MAIL])
    schema = '{"type":"object","properties":{"to":{"type":"string","description":"Who gets it."}},"required":["to"]}'
    own = f"- post.send_mail: Send a mail.\n  arguments (JSON Schema): {schema}"
    function = f'{{"name":"post.send_mail","description":"Send a mail.","parameters":{schema}}}'
    assert in_full(one) == own
    assert openai_tools([MAIL]) == f'[{{"type":"function","function":{function}}}]'
    assert (count(in_full(one)), count(openai_tools([MAIL]))) == (42, 50)
    assert in_full(Catalogue([MAIL, *FILES.values()])).count("arguments (JSON Schema)") == 1 + len(FILES)
