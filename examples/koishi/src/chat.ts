import { h, type Context, type Session } from 'koishi'
import type { Chat } from './config'
import type {} from './service'
import { plain } from './text'

export const name = 'memsidecar-chat'
export const inject = ['memory', 'http']

interface Completion {
  choices?: { message?: { content?: string | null } }[]
}

/** Answers direct messages, and those in groups that address the bot, by a chat model that is told what is remembered. */
export function apply(ctx: Context, config: Chat) {
  if (!config.chatModel) throw new Error('chatEndpoint is set: set chatModel as well')
  const log = ctx.logger('memory')

  ctx.middleware(async (session, next) => {
    const said = plain(session.elements ?? [], session.selfId)
    if (!said || !session.isDirect && !session.stripped.appel) return next()
    try {
      return h.text(await answer(session, said))
    } catch (error) {
      log.error('the chat model gives no answer: %s', error instanceof Error ? error.message : error)
      return session.text('memsidecar.no-answer')
    }
  })

  async function answer(session: Session, said: string): Promise<string> {
    const [recollection, conversation] = await Promise.all([
      ctx.memory.retrieve(session, said), ctx.memory.conversation(session),
    ])
    const system = [config.chatPrompt, recollection.promptContext, conversation].filter(Boolean).join('\n\n')
    const completion: Completion = await ctx.http.post(config.chatEndpoint.replace(/\/+$/, '') + '/chat/completions', {
      model: config.chatModel,
      messages: [{ role: 'system', content: system }, { role: 'user', content: said }],
    }, {
      headers: config.chatKey ? { authorization: `Bearer ${config.chatKey}` } : {},
      timeout: config.chatTimeout,
    })
    const content = completion.choices?.[0]?.message?.content
    if (!content) throw new Error('it answered with nothing')
    return content
  }
}
