package session

import (
	"github.com/rdmashim/rdmashim/uapi/msgring"
	"github.com/rdmashim/rdmashim/uapi/rpc/session/wire"
)

// receive gives the peer's messages to take, until the connection ends or take
// returns an error. A message is lent until take returns.
func receive(conn *msgring.Conn, take func(*wire.Message) error) {
	var m wire.Message
	for {
		b, err := conn.Peek()
		if err != nil {
			return
		}
		if err = m.Parse(b); err == nil {
			err = take(&m)
		}
		conn.Discard(len(b))
		if err != nil {
			return
		}
	}
}

// send sends the messages that next appends to its argument, until the
// connection ends or heard is closed. work tells that there may be more.
func send(conn *msgring.Conn, work, heard <-chan struct{}, next func([]byte) []byte) {
	var b []byte
	for {
		b = next(b[:0])
		if len(b) > 0 {
			if _, err := conn.Write(b); err != nil {
				return
			}
			continue
		}
		select {
		case <-work:
		case <-heard:
			return
		}
	}
}
