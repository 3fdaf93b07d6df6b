// Copies the API's proto files into the package, so that it is complete when it is packed. The copy is not committed.
import { cpSync, rmSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const from = fileURLToPath(new URL('../../../proto', import.meta.url))
const to = fileURLToPath(new URL('../proto', import.meta.url))
rmSync(to, { recursive: true, force: true })
cpSync(from, to, {
  recursive: true,
  filter: (path) => statSync(path).isDirectory() || path.endsWith('.proto'),
})
