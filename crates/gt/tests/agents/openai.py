"""Holds a conversation of two questions, bit by bit, asks one more as a whole, and makes three mistakes."""

import json
import pathlib
import sys

import openai

address, token, gate = sys.argv[1:]
client = openai.OpenAI(base_url=address, api_key=token)
history = []


def ask(text):
    history.append({"role": "user", "content": text})
    stream = client.chat.completions.create(
        model="scripted", messages=history, user="eva", stream=True, stream_options={"include_usage": True}
    )
    pieces, finish, usage = [], [], []
    for chunk in stream:
        for choice in chunk.choices:
            if choice.delta.content is not None:
                pieces.append(choice.delta.content)
            if choice.finish_reason is not None:
                finish.append(choice.finish_reason)
        if chunk.usage is not None:
            usage.append(chunk.usage.total_tokens)
        # The agent goes on when its first words have arrived here.
        if "".join(pieces):
            pathlib.Path(gate).touch()
    history.append({"role": "assistant", "content": "".join(pieces)})
    return {"pieces": pieces, "finish": finish, "usage": usage}


def mistake(client, **question):
    try:
        client.chat.completions.create(**{"model": "gasworks", "messages": history[:1], **question})
    except openai.OpenAIError as error:
        return type(error).__name__
    return "none"


told = {"first": ask("One?"), "second": ask("Two?")}
whole = client.chat.completions.create(model="gasworks", messages=[{"role": "user", "content": "Three?"}])
told["whole"] = whole.choices[0].message.content
told["whole_finish"] = whole.choices[0].finish_reason
told["models"] = [model.id for model in client.models.list()]
image = [{"type": "image_url", "image_url": {"url": "data:,"}}]
told["errors"] = [
    mistake(client, model="gpt-9"),
    mistake(openai.OpenAI(base_url=address, api_key="wrong")),
    mistake(client, messages=[{"role": "user", "content": image}]),
]
print(json.dumps(told))
