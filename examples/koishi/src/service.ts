import { randomUUID } from 'node:crypto'
import { status } from '@grpc/grpc-js'
import { Context, Service } from 'koishi'
import type { ForgetUserResponse, ListMemoriesResponse, Memory, Message, RetrieveResponse, Scope } from './api'
import { CallError, Client } from './client'
import type { Connection } from './config'
import { Outbox } from './outbox'

declare module 'koishi' {
  interface Context {
    memory: MemoryService
  }
}

/** How long a bot that stops waits for what is not handed over yet, in milliseconds. */
const farewell = 5000

/** What Retrieve takes at most, in characters. */
const longestQuery = 32_000

/** What a bot knows of a user that helps to answer. */
export interface Recollection {
  /** The memories, best first. */
  memories: Memory[]
  /** A block for the system prompt, to paste as it is. Empty when nothing is known. */
  promptContext: string
  /** Why memories are missing or may be. Empty when all is well. */
  reason: string
}

export interface Utterance {
  role: 'user' | 'assistant'
  content: string
  /** When it was said, in milliseconds. Now, if unset. */
  time?: number
}

/** Of a session: whose memory it is, and where. A bot without a session at hand gives these. */
export interface Whereabouts {
  platform: string
  userId?: string
  channelId?: string
  guildId?: string
  isDirect: boolean
}

interface Dialogue {
  requestId: string
  scope: Scope
  messages: Message[]
}

/** The memory of all users, as `ctx.memory`. */
export class MemoryService extends Service<Connection> {
  private readonly client: Client
  private readonly outbox: Outbox<Dialogue>
  private readonly log = this.ctx.logger('memory')
  private readonly trouble = { memory: '', conversation: '' }

  constructor(ctx: Context, private readonly connection: Connection) {
    super(ctx, 'memory', true)
    this.client = new Client(connection)
    this.outbox = new Outbox((dialogue) => this.handOver(dialogue), {
      waiting: (reason) => this.log.warn('what is said waits to be handed over: %s', reason),
      handedOver: (count) => this.log.info('what was said in the meantime is handed over: %d dialogues', count),
      lost: (reason) => this.log.error('a dialogue is not remembered: %s', reason),
    })
    ctx.on('exit', async () => {
      await this.flush(farewell)
      this.stopTrying()
    })
    ctx.on('dispose', () => {
      this.stopTrying()
      this.client.close()
    })
  }

  /**
   * What is known of the session's user that helps to answer the query, mostly what was just said. It never throws and
   * takes `retrieveTimeout` at most: without a sidecar the recollection is empty and says why.
   */
  async retrieve(session: Whereabouts, query: string): Promise<Recollection> {
    if (!query.trim()) return { memories: [], promptContext: '', reason: '' }
    try {
      const response = await this.client.call<RetrieveResponse>('MemoryService', 'Retrieve', {
        scope: this.scope(session), query: Array.from(query).slice(0, longestQuery).join(''),
      }, this.connection.retrieveTimeout)
      const reason = response.degraded.map(({ component, reason }) => `${component}: ${reason}`).join('; ')
      this.note('memory', reason)
      return { memories: [...response.standing, ...response.memories.map(({ memory }) => memory)], promptContext: response.promptContext, reason }
    } catch (error) {
      const reason = messageOf(error)
      this.note('memory', reason)
      return { memories: [], promptContext: '', reason }
    }
  }

  /**
   * The conversation so far in this channel, as a block for the system prompt. Empty when there is none, or when the sidecar is
   * away. It consists of what `consider` was given.
   */
  async conversation(session: Whereabouts): Promise<string> {
    try {
      const { promptContext } = await this.client.call<{ promptContext: string }>('SessionService', 'GetContext', {
        scope: this.scope(session),
      }, this.connection.retrieveTimeout)
      this.note('conversation', '')
      return promptContext
    } catch (error) {
      this.note('conversation', messageOf(error))
      return ''
    }
  }

  /**
   * Hands over a dialogue, from which the sidecar remembers what is worth it. It returns at once and never throws; while the
   * sidecar is away the dialogue waits.
   */
  consider(session: Whereabouts, dialogue: Utterance[]): void {
    const messages = dialogue.filter(({ content }) => content.trim()).map(({ role, content, time = Date.now() }): Message => ({
      role: role === 'user' ? 'ROLE_USER' : 'ROLE_ASSISTANT', content, sendTime: timestamp(time),
    }))
    if (messages.length === 0) return
    try {
      // No message ids: those of some platforms come again, and a message whose id was there before is not considered.
      this.outbox.put({ requestId: randomUUID(), scope: this.scope(session), messages })
    } catch (error) {
      this.log.error('a dialogue is not remembered: %s', messageOf(error))
    }
  }

  /** All that this channel may see of the user's memories, the newest first, at most 1,000. Throws when that cannot be told. */
  async list(session: Whereabouts): Promise<Memory[]> {
    const { memories } = await this.client.call<ListMemoriesResponse>('MemoryService', 'ListMemories', {
      scope: this.scope(session), pageSize: 1000,
    }, this.connection.callTimeout)
    return memories
  }

  /** Forgets one memory. Throws when that did not work; a memory that is gone already is forgotten. */
  async forget(session: Whereabouts, memoryId: string): Promise<void> {
    try {
      await this.client.call('MemoryService', 'DeleteMemory', { scope: this.scope(session), memoryId }, this.connection.callTimeout)
    } catch (error) {
      if (!(error instanceof CallError && error.code === status.NOT_FOUND)) throw error
    }
  }

  /**
   * Forgets all about the user, whatever the channel, and resolves with the number of memories. Throws when that did not work.
   */
  async forgetUser(session: Whereabouts): Promise<number> {
    const { namespace, userId } = this.scope(session)
    // What the user said before must not be remembered after.
    if (!await this.flush(this.connection.callTimeout)) throw new Error('what was said before is not handed over yet')
    const receipt = await this.client.call<ForgetUserResponse>('UserService', 'ForgetUser', {
      scope: { namespace, userId },
    }, this.connection.callTimeout)
    return receipt.memoryCount
  }

  /** Resolves with true when all that was given to consider is acknowledged, and with false when it is not after timeout ms. */
  flush(timeout: number): Promise<boolean> {
    return this.outbox.flush(timeout)
  }

  private stopTrying() {
    const count = this.outbox.close()
    if (count > 0) this.log.error('stopping with %d dialogues that could not be handed over and will not be remembered', count)
  }

  private async handOver(dialogue: Dialogue): Promise<void> {
    await this.client.call('MemoryService', 'ConsiderMemorizing', dialogue, this.connection.callTimeout, true)
  }

  /**
   * The scope of a session. Users and channels have their platform before them, since ids are unique on a platform only. What is
   * not surely a direct chat is a group, so that what was said in private stays there.
   */
  private scope({ platform, userId, channelId, guildId, isDirect }: Whereabouts): Scope {
    if (!userId) throw new Error('the session has no user')
    if (!channelId && !isDirect) throw new Error('the session has no channel')
    const { namespace, agent } = this.connection
    return {
      namespace,
      userId: `${platform}:${userId}`,
      agentId: agent,
      channelKind: isDirect ? 'CHANNEL_KIND_DIRECT' : 'CHANNEL_KIND_GROUP',
      channelId: channelId && (isDirect || !guildId || guildId === channelId ? `${platform}:${channelId}` : `${platform}:${guildId}/${channelId}`),
    }
  }

  /** Says once that something is missing, and once that it is back. */
  private note(what: 'memory' | 'conversation', reason: string) {
    if (reason && !this.trouble[what]) this.log.warn('answering without the %s, or with less of it: %s', what, reason)
    if (!reason && this.trouble[what]) this.log.info('the %s is back', what)
    this.trouble[what] = reason
  }
}

function timestamp(milliseconds: number) {
  return { seconds: Math.floor(milliseconds / 1000), nanos: Math.floor(milliseconds % 1000) * 1e6 }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
