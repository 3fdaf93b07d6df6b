// A bot with a memory: node bot.mjs alice 'I am allergic to peanuts.'
import { fileURLToPath } from 'node:url'
import grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'

const proto = fileURLToPath(new URL('../../proto', import.meta.url)) // or wherever you keep a copy of it
const definition = loadSync('memsidecar/v1/memory_service.proto', { includeDirs: [proto] })
const { MemoryService } = grpc.loadPackageDefinition(definition).memsidecar.v1
const memory = new MemoryService(process.env.MEMSIDECAR_ADDR ?? '127.0.0.1:7420', grpc.credentials.createInsecure(), {
  'grpc.enable_http_proxy': 0, // it is beside the bot, whatever proxy the system has
})
const patience = 1000 * (process.env.MEMSIDECAR_TIMEOUT ?? 1)

// Resolves with undefined when the memory is away: the bot answers all the same.
const bounded = (method, request) => new Promise((resolve) => {
  memory[method](request, { deadline: Date.now() + patience }, (error, response) => {
    if (error) console.error(`without memory: ${grpc.status[error.code]}: ${error.details}`)
    resolve(response)
  })
})

function answer(prompt) { // here goes your model
  const known = prompt.split('\n').filter((line) => line.startsWith('- ')).map((line) => line.slice(2))
  return known.length > 0 ? 'I know: ' + known.join(' ') : 'I know nothing of you yet.'
}

const [, , userId, said] = process.argv
if (!said) {
  console.error("A bot with a memory: node bot.mjs alice 'I am allergic to peanuts.'")
  process.exit(1)
}
const recalled = await bounded('Retrieve', { scope: { userId }, query: said })
const reply = answer('You are a helpful bot.\n' + (recalled?.promptContext ?? ''))
console.log(reply)
await bounded('ConsiderMemorizing', {
  scope: { userId },
  messages: [{ role: 'ROLE_USER', content: said }, { role: 'ROLE_ASSISTANT', content: reply }],
})
memory.close()
