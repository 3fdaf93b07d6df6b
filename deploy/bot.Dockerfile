# The bot of examples/python, with the stubs that it imports. Its user is the sidecar's, so that the socket is its, too.
FROM python:3.13-slim
WORKDIR /bot
COPY examples/python/requirements.txt ./
RUN pip install --no-cache-dir -r requirements.txt
COPY proto /tmp/proto
RUN python -m grpc_tools.protoc -I /tmp/proto --python_out=. --grpc_python_out=. /tmp/proto/memsidecar/v1/*.proto
COPY examples/python/*.py ./
USER 65532:65532
ENTRYPOINT ["python", "bot.py"]
