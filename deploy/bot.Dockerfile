# The bot of examples/python with its generated stubs. It runs as the sidecar's user, so that it may use the socket.
FROM python:3.13-slim
WORKDIR /bot
COPY examples/python/requirements.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY proto /tmp/proto
RUN python -m grpc_tools.protoc -I /tmp/proto --python_out=. --grpc_python_out=. /tmp/proto/memsidecar/v1/*.proto
COPY examples/python/*.py ./
USER 65532:65532
ENTRYPOINT ["python", "bot.py"]
