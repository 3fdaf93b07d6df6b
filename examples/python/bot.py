"""A bot with a memory: python3 bot.py alice 'I am allergic to peanuts.'"""
import asyncio, os, sys
import grpc
from memsidecar.v1 import memory_service_pb2 as api, memory_service_pb2_grpc, message_pb2

ADDRESS, PATIENCE = os.environ.get("MEMSIDECAR_ADDR", "127.0.0.1:7420"), float(os.environ.get("MEMSIDECAR_TIMEOUT", 1))  # seconds

def answer(prompt):  # here goes your model
    known = [line[2:] for line in prompt.splitlines() if line.startswith("- ")]
    return "I know: " + " ".join(known) if known else "I know nothing of you yet."

async def turn(memory, user, said):
    recalled = await bounded(memory.Retrieve, api.RetrieveRequest(scope={"user_id": user}, query=said))
    reply = answer("You are a helpful bot.\n" + (recalled.prompt_context if recalled else ""))
    print(reply, flush=True)
    await bounded(memory.ConsiderMemorizing, api.ConsiderMemorizingRequest(scope={"user_id": user}, messages=[
        {"role": message_pb2.ROLE_USER, "content": said}, {"role": message_pb2.ROLE_ASSISTANT, "content": reply}]))

async def bounded(call, request):  # the bot answers all the same when its memory is away
    try:
        return await call(request, timeout=PATIENCE)
    except grpc.RpcError as e:
        print(f"without memory: {e.code().name}: {e.details()}", file=sys.stderr)

async def main():
    async with grpc.aio.insecure_channel(ADDRESS, options=[("grpc.enable_http_proxy", 0)]) as channel:  # it is beside the bot
        await turn(memory_service_pb2_grpc.MemoryServiceStub(channel), sys.argv[1], sys.argv[2])

asyncio.run(main()) if len(sys.argv) == 3 else sys.exit(__doc__)
