package rdmanl

import (
	"encoding/binary"
	"errors"
	"syscall"

	"github.com/rdmashim/rdmashim/kshim/nldev"
)

// The netlink header (include/uapi/linux/netlink.h): length u32, type u16,
// flags u16, sequence number u32, port id u32, in the machine's order.
const (
	headerSize = 16

	typeError   = 2  // NLMSG_ERROR
	typeDone    = 3  // NLMSG_DONE
	typeMinimum = 16 // NLMSG_MIN_TYPE: below it are control messages

	flagRequest = 0x1
	flagMulti   = 0x2
	flagAck     = 0x4
	flagDump    = 0x300
	flagCapped  = 0x100 // of NLMSG_ERROR: without the request's payload
)

// nldevClient is RDMA_NL_NLDEV; a type is client<<10 | command.
const nldevClient = 5

// messageRoom bounds the messages of a dump, in bytes: readers have buffers of
// a page (NLMSG_GOODSIZE).
const messageRoom = 3500

// message is a netlink message of a program.
type message struct {
	typ, flags uint16
	seq        uint32
	all        []byte // header and attributes
}

// next splits the first message off; ok is false at the end, and for a message
// whose length exceeds the rest.
func next(b []byte) (m message, rest []byte, ok bool) {
	if len(b) < headerSize {
		return m, nil, false
	}
	n := int(binary.NativeEndian.Uint32(b))
	if n < headerSize || n > len(b) {
		return m, nil, false
	}
	m = message{binary.NativeEndian.Uint16(b[4:]), binary.NativeEndian.Uint16(b[6:]), binary.NativeEndian.Uint32(b[8:]), b[:n]}
	return m, b[min((n+3)&^3, len(b)):], true
}

// command is the message's, if it is one of NLDEV.
func (m *message) command() (op uint16, ok bool) { return m.typ & 0x3ff, m.typ>>10 == nldevClient }

func (m *message) payload() []byte { return m.all[headerSize:] }

// reply makes a message that answers m.
func (m *message) reply(port uint32, typ, flags uint16, payload []byte) []byte {
	b := make([]byte, headerSize, headerSize+len(payload))
	binary.NativeEndian.PutUint32(b, uint32(headerSize+len(payload)))
	binary.NativeEndian.PutUint16(b[4:], typ)
	binary.NativeEndian.PutUint16(b[6:], flags)
	binary.NativeEndian.PutUint32(b[8:], m.seq)
	binary.NativeEndian.PutUint32(b[12:], port)
	return append(b, payload...)
}

// status is NLMSG_ERROR, which tells of success, too (netlink_ack).
func (m *message) status(port uint32, err error) []byte {
	about, flags := m.all, uint16(0)
	if err == nil {
		about, flags = m.all[:headerSize], flagCapped
	}
	return m.reply(port, typeError, flags, append(errnoBytes(err), about...))
}

func errnoBytes(err error) []byte {
	var errno syscall.Errno
	if err != nil && !errors.As(err, &errno) {
		errno = syscall.EIO
	}
	return binary.NativeEndian.AppendUint32(nil, uint32(-int32(errno)))
}

// Answer returns the messages that answer the requests of a socket with that
// port id, a datagram each. A malformed rest is passed over, as by Linux
// (core/netlink.c: rdma_nl_rcv_skb).
func (s *Server) Answer(port uint32, sent []byte) (answers [][]byte) {
	for {
		m, rest, ok := next(sent)
		if !ok {
			return answers
		}
		sent = rest
		var err error
		if m.flags&flagRequest != 0 && m.typ >= typeMinimum {
			var done bool
			answers, done, err = s.answer(answers, port, &m)
			if done {
				continue
			}
		}
		if m.flags&flagAck != 0 || err != nil {
			answers = append(answers, m.status(port, err))
		}
	}
}

// answer carries out one request. A dump is done with its last message, also
// where it fails.
func (s *Server) answer(answers [][]byte, port uint32, m *message) (_ [][]byte, done bool, err error) {
	op, ok := m.command()
	c := commands()[op]
	if !ok || c == nil {
		return answers, false, syscall.EINVAL
	}
	q := query{server: s, sent: m}
	decoded := nldev.Decode(m.payload(), &q.attrs)
	if m.flags&flagDump == 0 {
		if c.one == nil || decoded != nil {
			return answers, false, syscall.EINVAL
		}
		payload, err := c.one(&q)
		if err != nil {
			return answers, false, err
		}
		return append(answers, m.reply(port, m.typ, 0, payload)), false, nil
	}
	if c.all == nil {
		return answers, false, syscall.EINVAL
	}
	var payloads [][]byte
	if err = syscall.EINVAL; decoded == nil {
		payloads, err = c.all(&q)
	}
	for _, p := range payloads {
		answers = append(answers, m.reply(port, m.typ, flagMulti, p))
	}
	return append(answers, m.reply(port, typeDone, flagMulti, errnoBytes(err))), true, nil
}
