package peer

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
)

const (
	// maxMessage bounds the memory that a peer can make this side allocate, in
	// bytes.
	maxMessage = 64 << 10
	// Silence bounds how long a side waits for an answer of the other, and so
	// how long it can go on believing in one that has gone.
	Silence = 5 * time.Second
	// newsWithin is how much later than a device the control connection may
	// know that the peer has gone.
	newsWithin = time.Second
)

// ErrGone says that the control connection broke.
var ErrGone = errors.New("the other process went away")

// ErrCame is a cause by which Watch's context ends when the message came.
var ErrCame = errors.New("the peer's message came")

// Conn is a control connection.
type Conn struct{ net.Conn }

// NewConn makes TCP notice a dead peer within Silence even when no reset
// arrives, as when the machine or the cable went.
func NewConn(conn net.Conn) *Conn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 3})
	}
	return &Conn{conn}
}

// Send sends a message.
func (c *Conn) Send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("control message of %d bytes is longer than %d", len(body), maxMessage)
	}
	// The deadline is this message's: others write to the connection after it.
	_ = c.SetWriteDeadline(time.Now().Add(Silence))
	defer c.SetWriteDeadline(time.Time{})
	_, err = c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...))
	return connError(err)
}

// Receive waits for a message; no deadline when limit is zero.
func (c *Conn) Receive(v any, limit time.Duration) error {
	if limit > 0 {
		c.Expect(limit)
	}
	defer c.SetReadDeadline(time.Time{})
	var size [4]byte
	if _, err := io.ReadFull(c, size[:]); err != nil {
		return connError(err)
	}
	n := binary.BigEndian.Uint32(size[:])
	if n > maxMessage {
		return fmt.Errorf("the peer announced a control message of %d bytes, more than %d: is it an rdmashim of this version?", n, maxMessage)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c, body); err != nil {
		return connError(err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return fmt.Errorf("the peer's control message is not understood: %w", err)
	}
	return nil
}

// Expect bounds how long the message that is being waited for may take from now
// on.
func (c *Conn) Expect(within time.Duration) {
	_ = c.SetReadDeadline(time.Now().Add(within))
}

// Watch receives the peer's next message into v in the background; came waits
// for it. The context that it returns ends with an error when the message did
// not come, and with end when it did; nil does not end it.
func (c *Conn) Watch(ctx context.Context, v any, end error) (watched context.Context, came func() error) {
	ctx, cancel := context.WithCancelCause(ctx)
	received := make(chan error, 1)
	go func() {
		err := c.Receive(v, 0)
		if why := cmp.Or(err, end); why != nil {
			cancel(why)
		}
		received <- err
	}()
	return ctx, func() error { return <-received }
}

// EndOf waits a moment for the news that the peer has gone, by the came of
// Watch, when a completion failed: a device of the same host knows of it before
// the control connection does. nil is no such news, or another error.
func (c *Conn) EndOf(came func() error, err error) error {
	var wc *uapi.WCError
	if !errors.As(err, &wc) {
		return nil
	}
	c.Expect(newsWithin)
	if gone := came(); errors.Is(gone, ErrGone) {
		return gone
	}
	return nil
}

// Cause prefers why ctx ended to an error that followed from it.
func Cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); err != nil && why != nil && !errors.Is(why, ErrCame) {
		return why
	}
	return err
}

// Gone wraps in ErrGone an error by which an exchange with the peer broke off.
func Gone(err error) error {
	for _, end := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return fmt.Errorf("%w (%w)", ErrGone, err)
		}
	}
	return err
}

func connError(err error) error {
	var timeout net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("no answer from the other process in time")
	case errors.Is(err, net.ErrClosed):
		return err
	default:
		return fmt.Errorf("%w (%w)", ErrGone, err)
	}
}
