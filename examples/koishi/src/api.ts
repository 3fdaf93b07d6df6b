// What this plugin uses of the API, in the form in which proto-loader gives it: names in camel case, enums by name.

export interface Scope {
  namespace?: string
  userId: string
  agentId?: string
  channelId?: string
  channelKind?: 'CHANNEL_KIND_DIRECT' | 'CHANNEL_KIND_GROUP'
}

export interface Message {
  role: 'ROLE_USER' | 'ROLE_ASSISTANT'
  content: string
  sendTime?: { seconds: number; nanos: number }
}

export interface Memory {
  id: string
  text: string
  kind: string
  importance: number
  createTime: { seconds: number; nanos: number } | null
}

export interface Degradation {
  component: string
  reason: string
}

export interface RetrieveResponse {
  standing: Memory[]
  memories: { memory: Memory; score: number }[]
  promptContext: string
  degraded: Degradation[]
  traceId: string
}

export interface ListMemoriesResponse {
  memories: Memory[]
  nextPageToken: string
}

export interface ForgetUserResponse {
  memoryCount: number
  sessionMessageCount: number
  purgedFromDisk: boolean
}
