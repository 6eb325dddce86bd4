# ruff: noqa: E501  outputs are lines of their own length
"""More of what models of current families write: written before it was seen how they are read, and no longer blind.

At first sight 30 of the 48 with calls were read, 18 refused, none misread; 22 of the 50 showed what no user should see.
"""

import json

from support.native_outputs import ARGS, BOTH, MAIL, ONE, PARIS, TWO, Calls, Output, call, deepseek, tags

LIST: Calls = [("plan_route", {"stops": ["Lyon", "Nice"], "avoid": {"tolls": True}, "note": 'via "A7"'})]
LIST_ARGS = json.dumps(LIST[0][1])
ONE_OF_LIST = call(*LIST[0])

LATER = [
    Output(
        "Qwen 3, empty thought, list", f"<think>\n\n</think>\n\n<tool_call>\n{ONE_OF_LIST}\n</tool_call><|im_end|>", LIST
    ),
    Output(
        "Qwen 3 Coder, list, words before",
        "I'll plan it.\n<tool_call>\n<function=plan_route>\n<parameter=stops>\n[\"Lyon\", \"Nice\"]\n</parameter>\n"
        "<parameter=avoid>\n{\"tolls\": true}\n</parameter>\n<parameter=note>\nvia \"A7\"\n</parameter>\n</function>\n</tool_call><|im_end|>",
        LIST,
        "I'll plan it.",
    ),
    Output(
        "Qwen Coder, outer tag forgotten",
        "<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
        PARIS,
    ),
    Output(
        "Llama 3.1, built-in",
        '<|python_tag|>brave_search.call(query="weather in Paris")<|eom_id|>',
        [("brave_search", {"query": "weather in Paris"})],
    ),
    Output(
        "Llama 3.3, two functions",
        f"<function=get_weather>{ARGS}</function>\n<function=send_mail>{MAIL}</function><|eom_id|>",
        BOTH,
    ),
    Output(
        "Llama 4, header",
        f"<|header_start|>assistant<|header_end|>\n\n{call('get_weather', PARIS[0][1], 'parameters')}<|eot|>",
        PARIS,
    ),
    Output("ToolACE, words on the line", "I look that up: [get_weather(city='Paris', days=2)]", PARIS, "I look that up:"),
    Output("Mistral Small 3.2", f"[TOOL_CALLS]get_weather[CALL_ID]a1B2c3D4e[ARGS]{ARGS}</s>", PARIS),
    Output(
        "Devstral, two, words before",
        f"Let me do both.[TOOL_CALLS]get_weather[ARGS]{ARGS}[TOOL_CALLS]send_mail[ARGS]{MAIL}</s>",
        BOTH,
        "Let me do both.",
    ),
    Output(
        "gpt-oss, no functions prefix",
        f"<|channel|>analysis<|message|>Need weather.<|end|><|start|>assistant<|channel|>commentary to=get_weather <|constrain|>json<|message|>{ARGS}<|call|>",
        PARIS,
    ),
    Output(
        "gpt-oss, tokens stripped, call",
        f"analysisWe need the weather.assistantcommentary to=functions.get_weather json{ARGS}",
        PARIS,
    ),
    Output(
        "gpt-oss, tokens stripped, answer",
        "analysisUser asks whether it rains. Easy.assistantfinalIt rains.",
        [],
        "It rains.",
    ),
    Output(
        "gpt-oss, code",
        '<|channel|>analysis to=browser.search code<|message|>{"query": "Paris weather", "topn": 3}<|call|>',
        [("browser.search", {"query": "Paris weather", "topn": 3})],
    ),
    Output(
        "Gemma 3, default_api",
        '```tool_code\nprint(default_api.get_weather(city="Paris", days=2))\n```',
        [("default_api.get_weather", PARIS[0][1])],
    ),
    Output(
        "Gemma 4, then its response token",
        '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|><|tool_call>call:send_mail{to:<|"|>ada@example.org<|"|>,name:<|"|>Ada<|"|>}<tool_call|><|tool_response>',
        BOTH,
    ),
    Output(
        "FunctionGemma, then its response token",
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call><start_function_response>",
        PARIS,
    ),
    Output(
        "DeepSeek R1 0528, opened",
        f"Okay, weather first.\n</think>\n\n{deepseek('tool', 'calls', 'begin')}{deepseek('tool', 'call', 'begin')}function{deepseek('tool', 'sep')}get_weather\n```json\n{ARGS}\n```{deepseek('tool', 'call', 'end')}{deepseek('tool', 'calls', 'end')}{deepseek('end', 'of', 'sentence')}",
        PARIS,
    ),
    Output(
        "DeepSeek V3.1, two",
        f"{deepseek('tool', 'calls', 'begin')}{deepseek('tool', 'call', 'begin')}get_weather{deepseek('tool', 'sep')}{ARGS}{deepseek('tool', 'call', 'end')}{deepseek('tool', 'call', 'begin')}send_mail{deepseek('tool', 'sep')}{MAIL}{deepseek('tool', 'call', 'end')}{deepseek('tool', 'calls', 'end')}",
        BOTH,
    ),
    Output(
        "Kimi K2 Thinking",
        f"<think>Both, in parallel.</think>On it.<|tool_calls_section_begin|><|tool_call_begin|>functions.plan_route:0<|tool_call_argument_begin|>{LIST_ARGS}<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
        LIST,
        "On it.",
    ),
    Output("GLM 4 0414", f"get_weather\n{ARGS}<|observation|>", PARIS),
    Output(
        "GLM 4.6, opened, two",
        "Weather, then mail.</think>I'll do both.\n<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>\n<tool_call>send_mail\n<arg_key>to</arg_key>\n<arg_value>ada@example.org</arg_value>\n<arg_key>name</arg_key>\n<arg_value>Ada</arg_value>\n</tool_call>",
        BOTH,
        "I'll do both.",
    ),
    Output(
        "MiniMax M2, list",
        '<think>\nRoute.\n</think>\n<minimax:tool_call>\n<invoke name="plan_route">\n<parameter name="stops">["Lyon", "Nice"]</parameter>\n<parameter name="avoid">{"tolls": true}</parameter>\n<parameter name="note">via "A7"</parameter>\n</invoke>\n</minimax:tool_call>[e~[',
        LIST,
    ),
    Output("Granite 20B", f"<function_call> {ONE}<|endoftext|>", PARIS),
    Output(
        "Granite 4, two, words after",
        f"<tool_call>\n{ONE}\n</tool_call>\n<tool_call>\n{TWO}\n</tool_call><|end_of_text|>",
        BOTH,
    ),
    Output(
        "Command R7B",
        f'<|START_THINKING|>I will look.<|END_THINKING|><|START_ACTION|>[\n    {{"tool_call_id": "0", "tool_name": "plan_route", "parameters": {LIST_ARGS}}}\n]<|END_ACTION|><|END_OF_TURN_TOKEN|>',
        LIST,
    ),
    Output(
        "LFM2.5, thought, words",
        "<think>Paris.</think>Checking now.<|tool_call_start|>[get_weather(city='Paris', days=2)]<|tool_call_end|><|im_end|>",
        PARIS,
        "Checking now.",
    ),
    Output(
        "Nemotron 3 Nano",
        "Weather.\n</think>\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>\n",
        PARIS,
    ),
    Output(
        "Claude 2",
        "<function_calls>\n<invoke>\n<tool_name>get_weather</tool_name>\n<parameters>\n<city>Paris</city>\n<days>2</days>\n</parameters>\n</invoke>\n</function_calls>",
        PARIS,
    ),
    Output(
        "LangChain, JSON action",
        f'Thought: I need the weather.\nAction:\n```\n{{"action": "get_weather", "action_input": {ARGS}}}\n```',
        PARIS,
    ),
    Output("LangChain, JSON action, alone", f'{{"action": "get_weather", "action_input": {ARGS}}}', PARIS),
    Output("ReAct, words before", f"I should look.\nAction: get_weather\nAction Input: {ARGS}", PARIS, "I should look."),
    Output(
        "Seed-OSS",
        "<seed:think>Weather.</seed:think><seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>",
        PARIS,
    ),
    Output(
        "Hunyuan A13B", f"<think>\nBoth.\n</think>\n<answer>\n<tool_calls>\n[{ONE}, {TWO}]\n</tool_calls>\n</answer>", BOTH
    ),
    Output(
        "Hunyuan A13B, answer", "<think>\nEasy.\n</think>\n<answer>\nIt rains.\n</answer>", [], "It rains."
    ),
    Output(
        "InternLM 2",
        f"I look.<|action_start|><|plugin|>\n{call('get_weather', PARIS[0][1], 'parameters')}<|action_end|>",
        PARIS,
        "I look.",
    ),
    Output(
        "Step 3",
        '<\uff5ctool_calls_begin\uff5c><\uff5ctool_call_begin\uff5c>function<\uff5ctool_sep\uff5c><steptml:invoke name="get_weather"><steptml:parameter name="city">Paris</steptml:parameter><steptml:parameter name="days">2</steptml:parameter></steptml:invoke><\uff5ctool_call_end\uff5c><\uff5ctool_calls_end\uff5c>',
        PARIS,
    ),
    Output("Apertus", f'<|inner_prefix|>Weather.<|tools_prefix|>[{{"get_weather": {ARGS}}}]<|tools_suffix|>', PARIS),
    Output(
        "LongCat",
        "<longcat_think>Weather.</longcat_think><longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Paris</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>2</longcat_arg_value>\n</longcat_tool_call>",
        PARIS,
    ),
    Output(
        "MiniCPM 3",
        '<|thought_start|>\nWeather.\n<|thought_end|>\n<|tool_call_start|>\n```python\nget_weather(city="Paris", days=2)\n```\n<|tool_call_end|>',
        PARIS,
    ),
    Output(
        "Grok",
        'I look.\n\n<xai:function_call name="get_weather">\n<parameter name="city">Paris</parameter>\n<parameter name="days">2</parameter>\n</xai:function_call>',
        PARIS,
        "I look.",
    ),
    Output("bare tool tag", f"<tool>{ONE}</tool>", PARIS),
    Output("bare function tag", f"<function>\n{ONE}\n</function>", PARIS),
    Output(
        "Anthropic's wire",
        json.dumps({"type": "tool_use", "id": "toolu_01", "name": "get_weather", "input": PARIS[0][1]}),
        PARIS,
    ),
    Output(
        "Responses' wire",
        json.dumps({"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": ARGS}),
        PARIS,
    ),
    Output("Gemini's wire", json.dumps({"functionCall": {"name": "get_weather", "args": PARIS[0][1]}}), PARIS),
    Output(
        "OLMo 3, list", 'I plan.\n\n<function_calls>plan_route(stops=["Lyon", "Nice"], avoid={"tolls": true}, note="via \\"A7\\"")</function_calls><|im_end|>', LIST, "I plan."
    ),
    Output("Claude, two", f"Both.\n\n<function_calls>\n{tags('', 'get_weather', city='Paris', days=2)}{tags('', 'ping')}</function_calls>", [*PARIS, ("ping", {})], "Both."),
    Output("EXAONE 4", f"<think>\nBoth.\n</think>\n\n<tool_call>{ONE}</tool_call>\n<tool_call>{TWO}</tool_call>[|endofturn|]", BOTH),
]  # fmt: skip
