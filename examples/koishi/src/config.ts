import { Schema } from 'koishi'

/** How the sidecar is reached, and whose memory it is. */
export interface Connection {
  address: string
  security: 'local' | 'tls' | 'plaintext'
  caFile: string
  certFile: string
  keyFile: string
  token: string
  namespace: string
  agent: string
  /** In milliseconds: what Retrieve may take, since somebody waits for the answer. */
  retrieveTimeout: number
  /** In milliseconds: one attempt of anything else. */
  callTimeout: number
}

/** What is done by itself. */
export interface Dialogues {
  remember: boolean
}

/** The chat model that answers, if any. */
export interface Chat {
  chatEndpoint: string
  chatKey: string
  chatModel: string
  chatPrompt: string
  chatTimeout: number
}

export interface Config extends Connection, Dialogues, Chat {}

const connection = Schema.object({
  address: Schema.string().default('127.0.0.1:7420'),
  security: Schema.union(['local', 'tls', 'plaintext'] as const).default('local'),
  caFile: Schema.string().default(''),
  certFile: Schema.string().default(''),
  keyFile: Schema.string().default(''),
  token: Schema.string().role('secret').default(''),
  namespace: Schema.string().default(''),
  agent: Schema.string().default(''),
  retrieveTimeout: Schema.natural().role('ms').min(1).default(1000),
  callTimeout: Schema.natural().role('ms').min(1).default(10_000),
})

const dialogues = Schema.object({
  remember: Schema.boolean().default(true),
})

const chat = Schema.object({
  chatEndpoint: Schema.string().role('link').default(''),
  chatKey: Schema.string().role('secret').default(''),
  chatModel: Schema.string().default(''),
  chatPrompt: Schema.string().role('textarea').default('You are a helpful and friendly chat bot. Answer in the language of the user.'),
  chatTimeout: Schema.natural().role('ms').min(1).default(60_000),
})

const zh = [
  {
    $desc: '连接',
    address: 'memsidecar 的地址：host:port，或 unix:///path。',
    security: 'local：不加密，仅限本机；tls：加密；plaintext：不加密且不在本机，仅用于没有旁人的网络。',
    caFile: '签发服务端证书的 CA 证书文件（PEM）。留空则使用系统信任的 CA。',
    certFile: '客户端证书文件（PEM），服务端要求时填写。',
    keyFile: '客户端证书的私钥文件（PEM）。',
    token: '访问令牌，由 memsidecar token create 生成。',
    namespace: '命名空间，例如 yantian/yantian-main。留空即 default。',
    agent: '机器人或角色的名称，用于区分多个角色。',
    retrieveTimeout: '回复前检索记忆最多等待的毫秒数，超时则不带记忆回复。',
    callTimeout: '其他调用每次尝试最多等待的毫秒数。',
  },
  {
    $desc: '对话',
    remember: '自动把机器人回复过的对话交给记忆服务，不论由哪个插件回复。关闭后只由其他插件调用 ctx.memory.consider()。',
  },
  {
    $desc: '聊天模型',
    chatEndpoint: '兼容 OpenAI 的接口地址，例如 https://api.openai.com/v1。留空则由其他插件回复。',
    chatKey: '接口密钥。',
    chatModel: '模型名称。',
    chatPrompt: '系统提示词，检索到的记忆会附在其后。',
    chatTimeout: '等待模型回复的最长毫秒数。',
  },
]

const en = [
  {
    $desc: 'Connection',
    address: 'Address of memsidecar: host:port, or unix:///path.',
    security: 'local: unencrypted, on this machine only; tls: encrypted; plaintext: unencrypted to another machine, for networks on which nobody else is.',
    caFile: 'Certificate file (PEM) of the authority of the server\'s certificate. Empty means those that the system trusts.',
    certFile: 'The client\'s certificate file (PEM), if the server wants one.',
    keyFile: 'Key file (PEM) of the client\'s certificate.',
    token: 'Token that memsidecar token create made.',
    namespace: 'Namespace, such as yantian/yantian-main. Empty means default.',
    agent: 'Name of the bot or persona, to tell several apart.',
    retrieveTimeout: 'Milliseconds that recalling may take before an answer; later it is answered without memory.',
    callTimeout: 'Milliseconds that each attempt of any other call may take.',
  },
  {
    $desc: 'Dialogues',
    remember: 'Hand over each dialogue that the bot answered, whichever plugin did. When off, only what other plugins give to ctx.memory.consider() is handed over.',
  },
  {
    $desc: 'Chat model',
    chatEndpoint: 'OpenAI-compatible endpoint, such as https://api.openai.com/v1. Empty: other plugins answer.',
    chatKey: 'The endpoint\'s key.',
    chatModel: 'The model\'s name.',
    chatPrompt: 'System prompt; what is recalled is put after it.',
    chatTimeout: 'Milliseconds to wait for the model.',
  },
]

export const Config: Schema<Config> = Schema.intersect([connection, dialogues, chat]).i18n({ 'zh-CN': zh, 'en-US': en })
