import type { Context } from 'koishi'
import type {} from './service'
import { plain } from './text'

export const name = 'memsidecar-dialogues'
export const inject = ['memory']

/** Hands over each dialogue after the bot answered, whichever plugin did. Commands are no dialogue. */
export function apply(ctx: Context) {
  const answers = new Map<number, string[]>() // by the id of the session that is being answered

  ctx.middleware((session, next) => {
    answers.set(session.id, [])
    return next()
  }, true)

  ctx.on('before-send', (outgoing, { session }) => {
    if (session) answers.get(session.id)?.push(plain(outgoing.elements ?? []))
  })

  // Comes after all middlewares, when what they answered is sent.
  ctx.on('middleware', (session) => {
    const answered = (answers.get(session.id) ?? []).filter(Boolean)
    answers.delete(session.id)
    if (answered.length === 0 || session.argv?.command || session.event.user?.isBot) return
    const said = plain(session.elements ?? [], session.selfId)
    if (!said) return
    ctx.memory.consider(session, [
      { role: 'user', content: said, time: session.timestamp },
      { role: 'assistant', content: answered.join('\n') },
    ])
  })
}
