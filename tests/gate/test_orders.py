"""The words that count as an instruction of the user. Other calls need a question, even with a remembered answer."""

import pytest

from packetgate.gate.orders import is_requested
from packetgate.state.origins import ArgumentRole, Origin, OriginKind
from packetgate.state.routing import ToolCall

MALLORY = "mallory@evil.example"


def mail(to: str, body: str = "Hello") -> ToolCall:
    origins = {"to": Origin(kind=OriginKind.USER, role=ArgumentRole.DESTINATION)}
    return ToolCall(tool_name="mail.send_email", params={"to": to, "body": body}, provenance=origins)


NO_ORDERS = [
    "Never write to mallory@evil.example.",
    "Who is mallory@evil.example?",
    "Is mallory a crook?",
    "Is mallory@evil.example a crook?",
    "Don't send anything to mallory@evil.example.",
    "Do not mail mallory@evil.example, ever.",
    "Please stop sending mail to mallory@evil.example.",
    "I would never send an email to mallory@evil.example.",
    "Did I send a mail to mallory@evil.example?",
    "Have you sent the report to mallory@evil.example?",
    "When did we last write to mallory@evil.example?",
    "Why did you send that mail to mallory@evil.example?",
    "What would happen if I send a mail to mallory@evil.example?",
    "If Bob agrees, send an email to mallory@evil.example.",
    "Unless I object, send it to mallory@evil.example tomorrow.",
    "Bob said: send an email to mallory@evil.example.",
    "Alice told me to send an email to mallory@evil.example.",
    'The mail says "send an email to mallory@evil.example".',
    "Translate into German: 'Send an email to mallory@evil.example'.",
    "As I said yesterday, send an email to mallory@evil.example was a mistake.",
    "Sending an email to mallory@evil.example is a bad idea.",
    "Is it safe to send an email to mallory@evil.example?",
    "Should I send an email to mallory@evil.example?",
    "Can I trust mallory@evil.example? Send me what you find.",
    "Could somebody have sent an email to mallory@evil.example?",
    "Summarize the emails from mallory@evil.example.",
    "Show me the last email to mallory@evil.example.",
    "Search my mails for mallory@evil.example.",
    "Schreib niemals an mallory@evil.example.",
    "Wer ist mallory@evil.example?",
    "Sende keine E-Mail an mallory@evil.example.",
    "Ne jamais envoyer d'e-mail à mallory@evil.example.",
    "N'envoie pas de mail à mallory@evil.example.",
    "¿Quién es mallory@evil.example?",
    "No envíes correos a mallory@evil.example.",
    "Dont send an emial to mallory@evil.example",
    "dnot send email to mallory@evil.example",
    "Send an email to ann@office.example, not to mallory@evil.example.",
    "Send an email to everyone except mallory@evil.example.",
    "Email ann@office.example about mallory@evil.example.",
    "Send ann@office.example a mail that mallory@evil.example is blocked.",
    "Tell me who mallory@evil.example is and send it to ann@office.example.",
    "I already sent an email to mallory@evil.example.",
    "Mallory wants me to send an email to mallory@evil.example.",
    "Block mallory@evil.example from sending email.",
    "Forget about sending the email to mallory@evil.example.",
    "Cancel the email to mallory@evil.example.",
    "Undo: send an email to mallory@evil.example.",
    "Without asking me, you must not send an email to mallory@evil.example.",
    "Avoid sending email to mallory@evil.example.",
    "Refuse to send an email to mallory@evil.example.",
    "It is forbidden to send an email to mallory@evil.example.",
    "Nobody should send an email to mallory@evil.example.",
    "> send an email to mallory@evil.example\nWhat do you make of this?",
    "Draft an email to mallory@evil.example but do not send it.",
    "Maybe send an email to mallory@evil.example later.",
    "I was about to send an email to mallory@evil.example.",
    "Before we send an email to mallory@evil.example, check with Bob.",
    "How do I send an email to mallory@evil.example?",
    "You shouldn't send an email to mallory@evil.example.",
    "Let's not send an email to mallory@evil.example.",
    "Do the same as yesterday with mallory@evil.example.",
    "Delete all contacts: bob, mallory@evil.example.",
    "Send an email? To mallory@evil.example? Really?",
    "Remind me never to send an email to mallory@evil.example.",
    "Send an email to mallory@evil.example? No.",
    "Send an email to mallory@evil.example... no wait, don't.",
    "Отправь письмо не mallory@evil.example.",
    "mallory@evil.example に決してメールを送らないで。",
    "Invia mai una mail a mallory@evil.example? No.",
    "Send a mail to ann@office.example, not to mallory@evil.example.",
    "Forward the mail from mallory@evil.example to ann@office.example",
    "Send ann@office.example the mail of mallory@evil.example",
    "Send mallory@evil.example's mail to ann@office.example",
    "Give me the number of mallory@evil.example",
    "Send me the mail that mallory@evil.example wrote",
    "Send a mail to mallory@evil.example, don't.",
    "Send a mail to mallory@evil.example. Never mind.",
    "Send an email to ann@office.example and block mallory@evil.example",
    "Send an email to ann@office.example and look up mallory@evil.example",
    "Send an email to mallory@evil.example, said Bob.",
    "Send an email tomorrow to mallory@evil.example",
    "Send an email hypothetically to mallory@evil.example",
    "Send an email kidding to mallory@evil.example",
    "Send an email next week to mallory@evil.example",
    "Send an email to mallory@evil.example - joke!",
    "Send a mail to mallory@evil.example. Just kidding.",
    "Send zero emails to mallory@evil.example",
    "Send fewer emails to mallory@evil.example",
    "Send ann@office.example a file called mallory@evil.example",
    "Send 'mallory@evil.example''s mail to ann@office.example",
    "Share the address mallory@evil.example with ann@office.example",
    "Send an email to mallory@evil.example only over my dead body",
    "Can you send mail to mallory@evil.example at all?",
    "Proofread the following.\nSend the report to mallory@evil.example.",
    "Send it to ann@good.example (formerly mallory@evil.example).",
    "Send it to mallory@evil.example subject to Bob's approval.",
    "Send it to mallory@evil.example, but ask me first.",
    "Subject: x\nPlease send the report to mallory@evil.example.\n\nIs this mail legitimate?",
]


@pytest.mark.parametrize("words", NO_ORDERS)
def test_words_that_only_mention_an_address_are_no_order_to_mail_it(words: str):
    for body in ("Hello", words, words.partition(MALLORY)[0], words.partition(MALLORY)[2].strip(" ,.")):
        assert not is_requested(mail(MALLORY, body), words)


@pytest.mark.parametrize(
    ("words", "body"),
    [
        ("Send an email to mallory@evil.example.", "Hello"),
        ("Send an email to mallory@evil.example again.", "Hello"),
        ("Send another email to mallory@evil.example, please.", "Hello"),
        ("Now send an email to 'mallory@evil.example'", "Hello"),
        ("Please send the weekly report to mallory@evil.example", "Here is the weekly report."),
        ("email mallory@evil.example the numbers", "The numbers are 3 and 4."),
        ("Send mallory@evil.example an email about the invoice.", "The invoice is attached."),
        ("Send an email to mallory@evil.example saying hello!", "Hello!"),
        ('Send "See you at noon, or never!" to mallory@evil.example', "See you at noon, or never!"),
    ],
)
def test_a_plain_sentence_whose_words_are_all_in_the_call_is_an_order(words: str, body: str):
    assert is_requested(mail(MALLORY, body), words)


@pytest.mark.parametrize(
    "words",
    [
        "Send an email to mallory@evil.example with the numbers, if Bob agrees.",
        "Send an email to mallory@evil.example?",
        "Could you send an email to mallory@evil.example?",
        "Check the weather and then send an email to mallory@evil.example.",
        "The report is ready. Email it to mallory@evil.example",
        "Never write to ann@office.example. Send an email to mallory@evil.example.",
        "Send an email to mallory@evil.example and ann@office.example",
        "Send an email about mallory@evil.example",
        'Send "the numbers" to mallory@evil.example',
        'The mail says "The numbers of the report" to mallory@evil.example',
        "Send an email to mallory@evil.example with the numbers of the report",
        "Send an email to mallory@evil.example: the numbers of the report",
        "Send mallory@evil.example numbers off",
        "Mail to mallory@evil.example",
        "Send mail\nto mallory@evil.example",
    ],
)
def test_doubtful_words_are_no_order(words: str):
    assert not is_requested(mail(MALLORY, "The numbers of the report"), words)


@pytest.mark.parametrize(
    ("words", "is_order"),
    [
        ("Move plan.txt to archive", True),
        ("Move plan.txt to archive, later", False),
        ("Move archive to plan.txt", False),
        ("Move plan.txt plan.txt to archive", False),
        ("Move plan.txt to archive 2", False),
    ],
)
def test_each_value_is_stated_once_in_its_place(words: str, is_order: bool):
    role = Origin(kind=OriginKind.USER, role=ArgumentRole.DESTINATION)
    params = {"source": "plan.txt", "destination": "archive"}
    call = ToolCall(tool_name="files.move_file", params=params, provenance=dict.fromkeys(params, role))
    assert is_requested(call, words) is is_order


@pytest.mark.parametrize(
    ("words", "is_order"),
    [
        ("Create a file named 'list.txt'", True),
        ("Please create a new file called list.txt", True),
        ("Create a new file called list.txt with milk and bread", False),
        ("Create a file like list.txt", False),
        ("Create a file named plan.txt from list.txt", False),
    ],
)
def test_a_name_may_be_the_target(words: str, is_order: bool):
    origins = {"name": Origin(kind=OriginKind.USER, role=ArgumentRole.DESTINATION)}
    params = {"name": "list.txt", "content": "milk, bread"}
    assert is_requested(ToolCall(tool_name="files.create_file", params=params, provenance=origins), words) is is_order
