// A Koishi bot for the tests, with the mock adapter as its platform. It reads what people say from standard input, a JSON object a
// line, and writes what they are answered to standard output, a line each, with a record separator before it. Other lines are
// Koishi's log. At the end of the input it stops as `koishi start` does.
const { createInterface } = require('node:readline')
const http = require('@koishijs/plugin-http').default
const mock = require('@koishijs/plugin-mock').default
const { Context } = require('koishi')
const memsidecar = require('..')

const app = new Context({ i18n: { locales: [process.env.BOT_LOCALE ?? 'zh-CN'] } })
app.plugin(http) // which koishi.yml has from the start
app.plugin(mock)
app.plugin(memsidecar, JSON.parse(process.env.BOT_CONFIG ?? '{}'))

// Another plugin, which has a use for memories, and answers by itself.
app.plugin({
  name: 'other',
  inject: ['memory'],
  apply(ctx) {
    ctx.command('recall <query:text>').action(async ({ session }, query) => {
      const { memories, reason } = await ctx.memory.retrieve(session, query)
      return JSON.stringify({ texts: memories.map(({ text }) => text), reason })
    })
    ctx.middleware((session, next) => session.userId === 'carol' ? 'noted' : next())
  },
})
const people = new Map()
function person(user, channel) {
  const key = JSON.stringify([user, channel])
  if (!people.has(key)) people.set(key, app.bots[0].client(user, channel))
  return people.get(key)
}

async function main() {
  await app.start()
  for await (const line of createInterface({ input: process.stdin })) {
    const { user, channel, text, count, flush } = JSON.parse(line)
    const answers = flush ? [String(await app.memory.flush(flush))] : await person(user, channel).receive(text, count)
    process.stdout.write('\x1e' + JSON.stringify(answers) + '\n')
  }
  await app.parallel('exit', 'SIGTERM')
  process.exit()
}

main()
