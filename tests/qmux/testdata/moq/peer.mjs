// A peer that speaks QMux by @moq/qmux and does what it is told: a line of JSON
// {id, call, …} on its input is a call, answered by a line {id, result} or {id,
// error} on its output when it is done. Calls overlap. It ends with its input.

import { createHash } from "node:crypto"
import net from "node:net"
import readline from "node:readline"
import tls from "node:tls"
import { webSocketStream } from "./socket.mjs"

// Time can be advanced, for idle timeouts; what looks at it looks often.
let ahead = 0
const { now } = Date
Date.now = () => now() + ahead
const { setInterval: every } = globalThis
globalThis.setInterval = (f, ms) => every(f, ms / 50)

console.error = console.warn = () => {} // it reports each error of its peer
const { default: Session, StreamError } = await import("@moq/qmux")

const sessions = {} // by name: promises of {session, socket, bidi, uni, streams}

function start(socket, role, { draft, config }) {
	const big = config && Object.fromEntries(Object.entries(config).map(([k, v]) => [k, BigInt(v)]))
	const session = role(webSocketStream(socket, draft), big)
	return {
		session,
		socket,
		bidi: session.incomingBidirectionalStreams.getReader(),
		uni: session.incomingUnidirectionalStreams.getReader(),
		grams: session.datagrams.readable.getReader(),
		streams: {},
	}
}

const client = (wss, config) => new Session(wss, { config })
const server = (wss, config) => Session.accept(wss, { config })

function pattern(n, factor) {
	return Uint8Array.from({ length: n }, (_, i) => (factor * i + 17) % 251)
}

const calls = {
	async connect(o) {
		const socket = o.secure
			? tls.connect({ port: o.port, host: o.host, ALPNProtocols: o.alpn, rejectUnauthorized: false })
			: net.connect({ port: o.port, host: o.host })
		await new Promise((resolve, reject) => {
			socket.once(o.secure ? "secureConnect" : "connect", resolve).once("error", reject)
		})
		sessions[o.session] = start(socket, client, o)
		await sessions[o.session].session.ready
		return socket.alpnProtocol
	},

	// listen takes one connection, and is done before it comes.
	listen(o) {
		return new Promise((listening, failed) => {
			sessions[o.session] = new Promise((resolve) => {
				const take = (socket) => {
					l.close()
					resolve(start(socket, server, o))
				}
				const l = o.secure
					? tls.createServer({ cert: o.cert, key: o.key, ALPNProtocols: o.alpn }, take)
					: net.createServer(take)
				l.once("tlsClientError", (err) => l.close())
				l.once("error", failed).listen(0, o.host, () => listening(l.address().port))
			})
		})
	},

	async open({ stream, uni }, s) {
		s.streams[stream] = uni
			? { writable: await s.session.createUnidirectionalStream() }
			: await s.session.createBidirectionalStream()
		s.streams[stream].writer = s.streams[stream].writable.getWriter()
	},

	async accept({ stream, uni }, s) {
		const { value, done } = await (uni ? s.uni : s.bidi).read()
		if (done) throw new Error("session ended")
		s.streams[stream] = uni ? { readable: value } : value
		if (!uni) value.writer = value.writable.getWriter()
	},

	async write({ stream, n, factor, text }, s) {
		await s.streams[stream].writer.write(text !== undefined ? Buffer.from(text) : pattern(n, factor))
	},

	async finish({ stream }, s) {
		await s.streams[stream].writer.close()
	},

	async abort({ stream, code }, s) {
		await s.streams[stream].writer.abort(new StreamError(code))
	},

	// broken waits until the peer has stopped the stream.
	async broken({ stream }, s) {
		await s.streams[stream].writer.closed
	},

	// read takes all until the end, or one piece.
	async read({ stream, once }, s) {
		const it = s.streams[stream]
		it.reader ??= it.readable.getReader()
		const hash = createHash("sha256")
		let n = 0
		let text = ""
		while (true) {
			const { value, done } = await it.reader.read()
			if (done) break
			hash.update(value)
			if (n + value.length < 100) text += Buffer.from(value).toString()
			n += value.length
			if (once) break
		}
		return { n, text, sha256: hash.digest("hex") }
	},

	async cancel({ stream, code }, s) {
		const it = s.streams[stream]
		it.reader ??= it.readable.getReader()
		await it.reader.cancel(new StreamError(code))
	},

	async sendDatagram({ text }, s) {
		const writer = s.session.datagrams.writable.getWriter()
		await writer.write(Buffer.from(text))
		writer.releaseLock()
		return s.session.datagrams.maxDatagramSize
	},

	async receiveDatagram(_, s) {
		return Buffer.from((await s.grams.read()).value).toString()
	},

	close({ code, text }, s) {
		s.session.close({ closeCode: code, reason: text })
	},

	async closed(_, s) {
		const { closeCode, reason } = await s.session.closed
		return { code: closeCode, text: reason }
	},

	inject({ hex }, s) {
		s.socket.write(Buffer.from(hex, "hex"))
	},

	advance({ n }) {
		ahead += n
	},
}

for await (const line of readline.createInterface({ input: process.stdin })) {
	const o = JSON.parse(line)
	const answer = (it) => process.stdout.write(`${JSON.stringify({ id: o.id, ...it })}\n`)
	Promise.resolve(sessions[o.session])
		.then((s) => calls[o.call](o, s))
		.then(
			(result) => answer({ result: result ?? null }),
			(err) => answer({ error: err.message, code: err.streamErrorCode ?? 0 }),
		)
}
process.exit(0)
