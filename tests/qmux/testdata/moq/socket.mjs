// Presents a socket as the WebSocketStream that @moq/qmux runs on: a record of
// QMux is a message there, so that its Size is added and stripped here.

// Node has it from version 22 on.
Promise.withResolvers ??= () => {
	const it = {}
	it.promise = new Promise((resolve, reject) => Object.assign(it, { resolve, reject }))
	return it
}

function encode(n) {
	const bytes = n < 2 ** 6 ? 1 : n < 2 ** 14 ? 2 : 4
	const b = Buffer.alloc(bytes)
	b.writeUIntBE(n, 0, bytes)
	b[0] |= { 1: 0x00, 2: 0x40, 4: 0x80 }[bytes]
	return b
}

// decode returns the record at the start of b and the bytes behind it, or
// nothing if it is not complete.
function decode(b) {
	const bytes = b.length && 1 << (b[0] >> 6)
	if (!bytes || b.length < bytes) return
	let size = b[0] & 0x3f
	for (let i = 1; i < bytes; i++) size = size * 256 + b[i]
	if (b.length < bytes + size) return
	return [new Uint8Array(b.subarray(bytes, bytes + size)), b.subarray(bytes + size)]
}

export function webSocketStream(socket, protocol) {
	socket.setNoDelay(true)
	let rest = Buffer.alloc(0)
	const closed = Promise.withResolvers()
	const readable = new ReadableStream({
		start(controller) {
			socket.on("data", (chunk) => {
				rest = Buffer.concat([rest, chunk])
				for (let next; (next = decode(rest)); ) {
					controller.enqueue(next[0])
					rest = next[1]
				}
				if (controller.desiredSize <= 0) socket.pause()
			})
			const end = () => {
				try { controller.close() } catch {} // it was closed before
				closed.resolve({ closeCode: 1006, reason: "" })
			}
			socket.on("end", end).on("close", end).on("error", end)
		},
		pull: () => void socket.resume(),
	})
	const writable = new WritableStream({
		write: (chunk) => new Promise((resolve, reject) => {
			const record = Buffer.concat([encode(chunk.byteLength), chunk])
			socket.write(record, (err) => (err ? reject(err) : resolve()))
		}),
	})
	return {
		opened: Promise.resolve({ readable, writable, protocol, extensions: "" }),
		closed: closed.promise,
		close: () => void socket.end(),
	}
}
