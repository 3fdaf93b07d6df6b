// What a program with a model does with a user's memory over MCP.
//
//   node client.mjs http http://127.0.0.1:7422/mcp alice [TOKEN]
//   node client.mjs stdio alice [ADDRESS]       starts memsidecar mcp
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [kind, ...args] = process.argv.slice(2);

function transport() {
  if (kind === "http") {
    const [url, user, token] = args;
    const headers = { "Memsidecar-User": encodeURIComponent(user) };
    if (token) headers.Authorization = `Bearer ${token}`;
    return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  }
  const [user, address] = args;
  return new StdioClientTransport({
    command: "memsidecar",
    args: ["mcp", "-u", user, ...(address ? ["--addr", address] : [])],
    env: process.env,
  });
}

const client = new Client({ name: "example", version: "1.0.0" });
await client.connect(transport());

async function call(name, input) {
  const result = await client.callTool({ name, arguments: input });
  if (result.isError) throw new Error(`${name}: ${result.content[0].text}`);
  return result.structuredContent;
}

const { tools } = await client.listTools();
console.log("tools:", tools.map((tool) => tool.name).sort().join(" "));

await call("remember", { text: "The user is allergic to peanuts.", kind: "fact" });
const { memories } = await call("recall", { query: "peanut cookies" });
console.log("recalled:", memories.map((memory) => memory.text).join(" | "));

await call("put_numbered_list", { items: [{ key: "/mv/1", title: "Solaris" }, { key: "/mv/2", title: "侠女" }] });
console.log("the second:", (await call("select_from_numbered_list", { answer: "第二个" })).key);
await call("select_from_numbered_list", { answer: "9" }).catch((error) => console.log("the ninth:", error.message));

const asked = await call("forget", { memory_id: memories[0].id });
const done = await call("forget", { memory_id: memories[0].id, confirm: true });
console.log("forgotten:", asked.deleted, done.deleted);

await call("remember", { text: "用户喜欢榴莲。", kind: "preference" });
const notebook = await client.readResource({ uri: "memsidecar://notebook" });
console.log("notebook:", notebook.contents[0].text.includes("榴莲"));
const { resourceTemplates } = await client.listResourceTemplates();
console.log("templates:", resourceTemplates.map((template) => template.uriTemplate).join(" "));
await client.close();
