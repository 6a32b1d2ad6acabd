package xprt

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rdmashim/rdmashim/tests/must"
	"github.com/rdmashim/rdmashim/uapi"
)

// pattern is n bytes that differ.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}

// TestCalls: a call arrives as one message, whichever parts of it are in
// chunks, and its reply goes inline if the client takes so much.
func TestCalls(t *testing.T) {
	var got []byte
	d, addr := serve(t, func(call []byte) []byte {
		got = call
		return call
	})
	for name, c := range map[string]struct {
		call      []byte
		at, chunk int // which part is in a read chunk; at < 0: all
		pieces    int
		reply     bool // there is a reply chunk
		private   []byte
		long      bool // the reply goes there
	}{
		"inline":                    {call: pattern(100)},
		"inline, of Linux":          {call: pattern(3000), private: private()},
		"inline, a chunk unused":    {call: pattern(100), reply: true},
		"too long for a client":     {call: pattern(1100), reply: true, long: true},
		"long part":                 {call: pattern(70_000), at: 40, chunk: 69_000, pieces: 1, reply: true, long: true},
		"long part, in pieces":      {call: pattern(70_000), at: 40, chunk: 69_000, pieces: 5, reply: true, long: true},
		"long part, to be padded":   {call: append(pattern(41), make([]byte, 3+8)...), at: 40, chunk: 1, pieces: 1},
		"the whole call in a chunk": {call: pattern(50_000), at: -1, chunk: 50_000, pieces: 3, reply: true, long: true},
		"the longest":               {call: pattern(longest), at: -1, chunk: longest, pieces: 1, reply: true, long: true},
	} {
		t.Run(name, func(t *testing.T) {
			cl := dial(t, d, addr, c.private)
			h, sent := header{xid: 7}, c.call
			if c.at < 0 {
				h.proc, h.reads, sent = procNoMsg, reads(0, cl.chunk(chunksAt, c.chunk, c.pieces)), nil
				copy(cl.mem[chunksAt:], c.call)
			} else if c.chunk > 0 {
				h.reads = reads(c.at, cl.chunk(chunksAt, c.chunk, c.pieces))
				copy(cl.mem[chunksAt:], c.call[c.at:][:c.chunk])
				sent = append(append([]byte(nil), c.call[:c.at]...), c.call[c.at+padded(c.chunk):]...)
			}
			const replyAt = 2 << 20
			if c.reply {
				h.reply = cl.chunk(replyAt, longest, 2)
			}
			a, rest, err := cl.call(append(message(h), sent...))
			require.NoError(t, err)
			require.True(t, bytes.Equal(c.call, got), "the call arrived")
			require.EqualValues(t, 7, a.xid)
			if !c.long {
				require.EqualValues(t, procMsg, a.proc)
				require.Equal(t, c.call, rest)
				return
			}
			require.EqualValues(t, procNoMsg, a.proc)
			require.EqualValues(t, len(c.call), a.reply[0].length+a.reply[1].length)
			require.True(t, bytes.Equal(c.call, cl.mem[replyAt:][:len(c.call)]), "the reply arrived")
		})
	}
}

// readReply is a reply to an NFSv3 READ.
func readReply(data []byte, attributes bool) []byte {
	b := []byte{0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 5, 'p', 'r', 'o', 'o', 'f', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if attributes {
		b = append(be.AppendUint32(b, 1), make([]byte, 84)...)
	} else {
		b = be.AppendUint32(b, 0)
	}
	b = be.AppendUint32(be.AppendUint32(b, uint32(len(data))), 1)
	b = append(be.AppendUint32(b, uint32(len(data))), data...)
	return append(b, make([]byte, padded(len(data))-len(data))...)
}

// TestReadData: the data of a READ go to the write chunk, and what is left of
// the reply is sent. Another reply, and one that lies, stays as it is.
func TestReadData(t *testing.T) {
	var reply []byte
	d, addr := serve(t, func([]byte) []byte { return reply })
	cl := dial(t, d, addr, nil)
	for _, n := range []int{1, 4, 5001, payload} {
		data := pattern(n)
		reply = readReply(data, n%2 == 1)
		a, rest, err := cl.call(append(message(header{xid: 7, writes: [][]segment{cl.chunk(chunksAt, payload, 3)}}), pattern(40)...))
		require.NoError(t, err)
		require.Equal(t, reply[:len(reply)-padded(n)], rest)
		require.True(t, bytes.Equal(data, cl.mem[chunksAt:][:n]))
		written := 0
		for _, s := range a.writes[0] {
			written += int(s.length)
		}
		require.Equal(t, n, written)
	}
	whole := readReply(pattern(100), true)
	for name, b := range map[string][]byte{
		"empty": nil, "cut": whole[:len(whole)-1], "call": append([]byte{0, 0, 0, 7, 0, 0, 0, 0}, whole[8:]...),
		"length": append(be.AppendUint32(append([]byte(nil), whole[:len(whole)-104]...), 1<<31), pattern(100)...),
	} {
		reply = b
		a, rest, err := cl.call(append(message(header{xid: 7, writes: [][]segment{cl.chunk(chunksAt, 200, 1)}}), 1, 2, 3, 4))
		require.NoError(t, err, name)
		require.True(t, bytes.Equal(b, rest), name)
		require.Zero(t, a.writes[0][0].length, name)
	}
}

// TestHostile: bytes without a number, and keys that open nothing, end their
// connection, and the next client is served.
func TestHostile(t *testing.T) {
	reply := pattern(2000)
	d, addr := serve(t, func([]byte) []byte { return reply })
	for name, forge := range map[string]func(cl *client) []byte{
		"nothing": func(*client) []byte { return nil },
		"wrong key": func(cl *client) []byte {
			c := cl.chunk(chunksAt, 64, 1)
			c[0].key ^= 0x1234
			return message(header{reads: reads(0, c)})
		},
		"memory of others": func(cl *client) []byte {
			c := cl.chunk(chunksAt, 64, 1)
			c[0].addr += 4 << 20
			return message(header{reads: reads(0, c)})
		},
		"reply to a bad key": func(cl *client) []byte {
			c := cl.chunk(chunksAt, 4000, 1)
			c[0].key ^= 0x1234
			return message(header{reply: c})
		},
	} {
		t.Run(name, func(t *testing.T) {
			cl := dial(t, d, addr, nil)
			cl.t = t
			_, _, err := cl.call(forge(cl))
			require.Error(t, err)
			require.NotErrorIs(t, err, errAnswer)
			cl = dial(t, d, addr, private())
			_, rest, err := cl.call(append(message(header{xid: 7}), 1, 2, 3, 4))
			require.NoError(t, err)
			require.Equal(t, reply, rest)
		})
	}
}

// TestRefused: a message that breaks the protocol is answered with its number
// and why, as RFC 8166, 4.5 has it, and the same client is served on.
func TestRefused(t *testing.T) {
	reply := pattern(2000)
	d, addr := serve(t, func([]byte) []byte { return reply })
	chunk := []byte{0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, credits, 0, 0, 0, 4, 0, 0, 0, 2}
	for name, forge := range map[string]func(cl *client) []byte{
		"half a header":   func(*client) []byte { return message(header{})[:22] },
		"version":         func(*client) []byte { b := message(header{}); b[7] = 2; return b },
		"procedure":       func(*client) []byte { b := message(header{}); b[15] = 5; return b },
		"endless list":    func(*client) []byte { return bytes.Repeat([]byte{0, 0, 0, 1}, inline/4) },
		"many segments":   func(*client) []byte { b := message(header{reply: []segment{{}}}); b[27] = 0xff; b[24] = 0xff; return b },
		"too long a call": func(cl *client) []byte { return message(header{reads: reads(0, cl.chunk(0, longest+1, 1))}) },
		"as long as it can": func(cl *client) []byte {
			return message(header{reads: reads(0, []segment{{cl.at.RKey, 1<<32 - 1, cl.at.Addr}})})
		},
		"positions backwards": func(cl *client) []byte {
			return append(message(header{reads: append(reads(8, cl.chunk(0, 8, 1)), reads(4, cl.chunk(0, 8, 1))...)}), pattern(16)...)
		},
		"position far behind": func(cl *client) []byte { return message(header{reads: reads(1<<31, cl.chunk(0, 8, 1))}) },
		"no room for a reply": func(cl *client) []byte { return message(header{xid: 7}) },
		"short reply chunk":   func(cl *client) []byte { return message(header{xid: 7, reply: cl.chunk(chunksAt, 100, 2)}) },
	} {
		t.Run(name, func(t *testing.T) {
			cl := dial(t, d, addr, nil)
			cl.t = t
			for range 3 {
				msg := forge(cl)
				be.PutUint32(msg, 9)
				want := chunk
				if name == "version" {
					want = append(append([]byte(nil), chunk[:19]...), 1, 0, 0, 0, 1, 0, 0, 0, 1)
				}
				require.Equal(t, want, must.Get(cl.exchange(msg))(t))
			}
			// The server ignores these two.
			for i, proc := range []uint32{procDone, procError} {
				at := 8<<10 + i<<10
				n := copy(cl.mem[at:], message(header{xid: 8, proc: proc}))
				must.Get(d.Post(cl.qp, []uapi.WR{{Op: uapi.OpSend, SGE: []uapi.SGE{{MR: cl.mr, Offset: uint64(at), Length: uint64(n)}}}}))(t)
			}
			const replyAt = 2 << 20
			h, _, err := cl.call(append(message(header{xid: 7, reply: cl.chunk(replyAt, longest, 1)}), 1, 2, 3, 4))
			require.NoError(t, err)
			require.EqualValues(t, 7, h.xid)
			require.Equal(t, reply, cl.mem[replyAt:][:len(reply)])
		})
	}
}

// TestFull: a client too many is refused, and taken when another one has left.
func TestFull(t *testing.T) {
	d, addr := serve(t, func(call []byte) []byte { return call })
	var all []uapi.QP
	for range Most {
		all = append(all, must.Get(d.Dial(t.Context(), addr, uapi.DialConfig{}))(t))
	}
	must.Fail(d.Dial(t.Context(), addr, uapi.DialConfig{}))(t, uapi.ErrRefused)
	require.NoError(t, d.DestroyQP(all[0]))
	require.Eventually(t, func() bool {
		qp, err := d.Dial(t.Context(), addr, uapi.DialConfig{})
		if err == nil {
			all[0] = qp
		}
		return err == nil
	}, patience, 1e7)
	for _, qp := range all {
		require.NoError(t, d.DestroyQP(qp))
	}
}
