import { h, type Context, type Fragment, type Session } from 'koishi'
import type {} from './service'

export const name = 'memsidecar-commands'
export const inject = ['memory']

/** How many memories memory.list shows. */
const shown = 20

/** How many people's lists are kept, so that a number means what they saw. */
const lists = 1000

export function apply(ctx: Context) {
  const log = ctx.logger('memory')
  const listed = new Map<string, string[]>() // the ids that were shown last, by person and channel

  ctx.i18n.define('zh-CN', zh)
  ctx.i18n.define('en-US', en)

  ctx.command('memory')

  ctx.command('memory.list').alias('记忆列表').action(({ session }) => session && told(session, async () => {
    const memories = await ctx.memory.list(session)
    const page = memories.slice(0, shown)
    remember(session, page.map(({ id }) => id))
    if (page.length === 0) return session.text('.empty')
    const lines = page.map(({ text }, index) => `${index + 1}. ${text}`)
    if (memories.length > shown) lines.push(session.text('.more', [memories.length - shown]))
    return h.text([session.text('.header'), ...lines].join('\n')) // as text: what people said may look like elements
  }))

  ctx.command('memory.forget [number:posint]').alias('忘记我').action(({ session }, number) => session && told(session, async () => {
    if (number) {
      const id = listed.get(session.fid)?.[number - 1]
      if (!id) return session.text('.unknown', [number])
      await ctx.memory.forget(session, id)
      return session.text('.forgotten', [number])
    }
    await session.send(session.text('.confirm'))
    const answer = await session.prompt()
    if (!/^(是|是的|确定|好|y|yes|ok)[。.!！]?$/i.test(answer?.trim() ?? '')) return session.text('.kept')
    const count = await ctx.memory.forgetUser(session)
    listed.delete(session.fid)
    return session.text('.all', [count])
  }))

  /** Commands say that they failed, in place of the memories that they have not. */
  async function told(session: Session, action: () => Promise<Fragment>): Promise<Fragment> {
    try {
      return await action()
    } catch (error) {
      log.warn('a command failed: %s', error instanceof Error ? error.message : error)
      return session.text('memsidecar.away')
    }
  }

  function remember(session: Session, ids: string[]) {
    listed.delete(session.fid)
    listed.set(session.fid, ids)
    if (listed.size > lists) listed.delete(listed.keys().next().value!)
  }
}

const zh = {
  memsidecar: {
    'away': '现在无法访问记忆，请稍后再试。',
    'no-answer': '抱歉，我现在无法回答，请稍后再试。',
  },
  commands: {
    memory: {
      description: '长期记忆',
      list: {
        description: '看看我记得你的哪些事',
        messages: { header: '我记得：', empty: '我还没有记住关于你的事。', more: '……还有 {0} 条。' },
      },
      forget: {
        description: '忘记关于你的一切，或列表中的某一条',
        messages: {
          confirm: '我会忘记关于你的一切，包括在其他聊天中说过的，并且无法恢复。确定吗？（是/否）',
          kept: '好的，什么都没有忘记。',
          all: '已忘记关于你的一切，共 {0} 条记忆。',
          forgotten: '已忘记第 {0} 条。',
          unknown: '列表中没有第 {0} 条，请先查看记忆列表。',
        },
      },
    },
  },
}

const en = {
  memsidecar: {
    'away': 'I cannot reach my memory right now, please try again later.',
    'no-answer': 'Sorry, I cannot answer right now, please try again later.',
  },
  commands: {
    memory: {
      description: 'Long-term memory',
      list: {
        description: 'What I remember of you',
        messages: { header: 'I remember:', empty: 'I remember nothing of you yet.', more: '… and {0} more.' },
      },
      forget: {
        description: 'Forget all about you, or one of the list',
        messages: {
          confirm: 'I will forget all about you, whatever the chat, and cannot undo it. Are you sure? (yes/no)',
          kept: 'All right, nothing is forgotten.',
          all: 'All about you is forgotten, {0} memories.',
          forgotten: 'Number {0} is forgotten.',
          unknown: 'There is no number {0}. Look at memory.list first.',
        },
      },
    },
  },
}
