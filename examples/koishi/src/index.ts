// Long-term memory for Koishi: ctx.memory for other plugins, and what needs no other plugin.
import type { Context } from 'koishi'
import * as chat from './chat'
import * as commands from './commands'
import type { Config as Options } from './config'
import * as dialogues from './dialogues'
import { MemoryService } from './service'

export { Config } from './config'
export { MemoryService } from './service'
export type { Recollection, Utterance, Whereabouts } from './service'
export type { Memory } from './api'

export const name = 'memsidecar'

export function apply(ctx: Context, config: Options) {
  ctx.plugin(MemoryService, config)
  ctx.plugin(commands)
  if (config.remember) ctx.plugin(dialogues)
  if (config.chatEndpoint) ctx.plugin(chat, config)
}
