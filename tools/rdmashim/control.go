package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The control connection is TCP. It carries what both sides must agree on
// before and after the transfer; the data itself moves by RDMA only. That it
// breaks is how a side learns at once that the other process has gone.

const (
	// controlVersion changes when the messages below do.
	controlVersion = 1
	// maxMessage bounds what a peer can make this side allocate.
	maxMessage = 64 << 10
	// peerSilence bounds how long a side waits for an answer of the other,
	// and so how long it can go on believing in one that has gone.
	peerSilence = 5 * time.Second
)

// hello is the client's first message.
type hello struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Bytes   int64  `json:"bytes"`
}

// welcome answers hello; a refusal carries the reason.
type welcome struct {
	PID    int    `json:"pid"`
	Device side   `json:"device"`
	Error  string `json:"error,omitempty"`
}

// goodbye is the client's last message: the transfer is complete.
type goodbye struct {
	OK bool `json:"ok"`
}

// farewell answers goodbye.
type farewell struct {
	SHA256   string            `json:"sha256"`
	Counters map[string]uint64 `json:"counters"`
}

type control struct {
	conn net.Conn
}

// newControl makes TCP notice a dead peer within peerSilence even when no
// reset arrives, as when the machine or the cable went.
func newControl(conn net.Conn) *control {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3})
	}
	return &control{conn}
}

func (c *control) send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("control message of %d bytes is longer than %d", len(body), maxMessage)
	}
	// The deadline is this message's: others write to the connection after it.
	_ = c.conn.SetWriteDeadline(time.Now().Add(peerSilence))
	defer c.conn.SetWriteDeadline(time.Time{})
	_, err = c.conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return peerError(err)
}

// receive waits for a message; no deadline when limit is zero.
func (c *control) receive(v any, limit time.Duration) error {
	var deadline time.Time
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	_ = c.conn.SetReadDeadline(deadline)
	defer c.conn.SetReadDeadline(time.Time{})
	var size [4]byte
	if _, err := io.ReadFull(c.conn, size[:]); err != nil {
		return peerError(err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return fmt.Errorf("the peer announced a control message of %d bytes, more than %d: is it an rdmashim of this version?", n, maxMessage)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.conn, body); err != nil {
		return peerError(err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("the peer's control message is not understood: %w", err)
	}
	return nil
}

// expect bounds how long the message that is being waited for may take from now on.
func (c *control) expect(within time.Duration) {
	_ = c.conn.SetReadDeadline(time.Now().Add(within))
}

// errPeerGone says that the control connection broke.
var errPeerGone = errors.New("the other process went away")

func peerError(err error) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no answer from the other process in time")
	case errors.Is(err, net.ErrClosed):
		return err
	default:
		return fmt.Errorf("%w (%w)", errPeerGone, err)
	}
}
