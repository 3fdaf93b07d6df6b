import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { loadSync } from '@grpc/proto-loader'
import type { Connection } from './config'

/** The proto files that `npm run proto` copied into this package. */
const protoDir = resolve(__dirname, '..', 'proto')

/** What is repeated: only calls that change nothing, after UNAVAILABLE, for 150 ms at most, because somebody waits. */
const serviceConfig = JSON.stringify({
  methodConfig: [{
    name: [
      { service: 'memsidecar.v1.MemoryService', method: 'Retrieve' },
      { service: 'memsidecar.v1.SessionService', method: 'GetContext' },
    ],
    retryPolicy: {
      maxAttempts: 3, initialBackoff: '0.05s', maxBackoff: '0.1s', backoffMultiplier: 2, retryableStatusCodes: ['UNAVAILABLE'],
    },
  }],
})

type Service = 'MemoryService' | 'UserService' | 'SessionService'
type Method = (request: object, metadata: grpc.Metadata, options: grpc.CallOptions,
  done: (error: grpc.ServiceError | null, response?: unknown) => void) => grpc.ClientUnaryCall

/** A call that failed. */
export class CallError extends Error {
  constructor(readonly code: grpc.status, method: string, details: string) {
    super(`${method}: ${grpc.status[code]}: ${details}`)
  }
}

/** The connection to the sidecar. It is made with the first call, and again whenever it is lost. */
export class Client {
  private readonly services: Record<Service, grpc.Client>
  private readonly token: string

  /** Throws when the configuration is wrong, and never because the sidecar is away. */
  constructor(config: Connection) {
    const credentials = credentialsFor(config)
    const options: grpc.ChannelOptions = {
      'grpc.service_config': serviceConfig,
      'grpc.enable_http_proxy': 0, // the sidecar is beside the bot
      // A sidecar that is back is found at once; gRPC's own limit of two minutes would leave the bot without memory as long.
      'grpc.initial_reconnect_backoff_ms': 50,
      'grpc.max_reconnect_backoff_ms': 500,
    }
    const definition = loadSync(['memsidecar/v1/memory_service.proto', 'memsidecar/v1/user_service.proto', 'memsidecar/v1/session_service.proto'], {
      includeDirs: [protoDir], enums: String, longs: Number, defaults: true, arrays: true,
    })
    const api = (grpc.loadPackageDefinition(definition) as any).memsidecar.v1
    this.services = {
      MemoryService: new api.MemoryService(config.address, credentials, options),
      UserService: new api.UserService(config.address, credentials, options),
      SessionService: new api.SessionService(config.address, credentials, options),
    }
    this.token = config.token
  }

  /**
   * One call. It throws a CallError, at the latest after timeout milliseconds. With wait it waits that long for a sidecar that is
   * away; otherwise that is an error at once.
   */
  call<Response>(service: Service, method: string, request: object, timeout: number, wait = false): Promise<Response> {
    const metadata = new grpc.Metadata({ waitForReady: wait })
    if (this.token) metadata.set('authorization', `Bearer ${this.token}`)
    const client = this.services[service]
    return new Promise((resolve, reject) => {
      const invoke = (client as unknown as Record<string, Method>)[method]
      invoke.call(client, request, metadata, { deadline: Date.now() + timeout }, (error, response) => {
        if (error) reject(new CallError(error.code, method, error.details.replace(/ *Resolution note: *$/, '')))
        else resolve(response as Response)
      })
    })
  }

  close() {
    for (const client of Object.values(this.services)) client.close()
  }
}

function credentialsFor(config: Connection): grpc.ChannelCredentials {
  const { address, security, caFile, certFile, keyFile } = config
  if (address.includes('://') && !address.startsWith('unix://')) {
    throw new Error(`address ${address} is no address of a sidecar: write host:port or unix:///path`)
  }
  if (security !== 'tls') {
    if (caFile || certFile || keyFile) throw new Error('caFile, certFile and keyFile are for security: tls')
    if (security === 'local' && !isLocal(address)) {
      throw new Error(`${address} is not on this machine, and what users say would cross the network unencrypted: ` +
        'set security to tls, or to plaintext if nobody else is on that network')
    }
    return grpc.credentials.createInsecure()
  }
  if (!certFile !== !keyFile) throw new Error('certFile and keyFile belong together')
  const read = (path: string) => path ? readFileSync(path) : null
  return grpc.credentials.createSsl(read(caFile), read(keyFile), read(certFile))
}

function isLocal(address: string): boolean {
  if (address.startsWith('unix:')) return true
  const host = address.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1')
  return host === 'localhost' || host === '::1' || isIP(host) === 4 && host.startsWith('127.')
}
