package msgring

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/rdmashim/rdmashim/uapi"
	"github.com/rdmashim/rdmashim/uapi/msgring/core"
)

// DialOver is Dial where two programs share a channel, usually TCP, and no
// connection manager: the ends exchange hellos and endpoints over it, and each
// knows that the other one is ready when it returns. The peer calls AcceptOver.
//
// The channel belongs to the connection: it is closed with it, and when
// DialOver fails, and its end is the connection's end. A goroutine waits for
// that. It is the channel's keepalive that notices a silent peer; Config's has
// no effect.
//
// Errors: *core.Refusal when the peer refuses the hello, and is uapi.ErrRefused
// as well; EPROTO for what is no answer; EINVAL for a configuration that is not
// one; those of uapi.Device.ConnectOver.
func DialOver(ctx context.Context, device *uapi.Device, channel net.Conn, config Config) (*Conn, error) {
	return over(ctx, channel, func(ctx context.Context) (*Conn, error) {
		c, err := newConn(device, config)
		if err != nil {
			return nil, err
		}
		hello := c.hello()
		if err = writeRecord(channel, recordHello, hello.Append(nil, false)); err == nil {
			err = readAnswer(channel, &c.peer)
		}
		if err == nil {
			err = c.answered(&hello)
		}
		if err != nil {
			return nil, errors.Join(err, c.memory.free())
		}
		return c, c.connectOver(ctx, channel, nil)
	})
}

// AcceptOver is Accept for a peer that calls DialOver. It refuses a hello that
// does not meet config and tells the peer why. Errors are those of DialOver,
// and of Config.Admit.
func AcceptOver(ctx context.Context, device *uapi.Device, channel net.Conn, config Config) (*Conn, error) {
	return over(ctx, channel, func(ctx context.Context) (*Conn, error) {
		err := config.Check()
		if err != nil {
			return nil, err
		}
		kind, b, err := readRecord(channel)
		if err == nil && kind != recordHello {
			err = fmt.Errorf("msgring: the peer sent record %d where a hello is due: %w", kind, syscall.EPROTO)
		}
		if err != nil {
			return nil, err
		}
		peer, err := config.admit(b)
		if err != nil {
			return nil, errors.Join(err, writeRecord(channel, recordRefusal, refusalTo(err)))
		}
		c, err := newConn(device, config)
		if err != nil {
			return nil, errors.Join(err, writeRecord(channel, recordRefusal, nil))
		}
		c.peer = peer
		return c, c.connectOver(ctx, channel, func() error {
			hello := c.hello()
			return writeRecord(channel, recordHello, hello.Append(nil, true))
		})
	})
}

// over bounds what make does on the channel by ctx, or by
// uapi.DefaultExchangeTimeout if that has no deadline, and closes the channel
// if it fails.
func over(ctx context.Context, channel net.Conn, make func(context.Context) (*Conn, error)) (*Conn, error) {
	if channel == nil {
		return nil, fmt.Errorf("msgring: there is no channel: %w", syscall.EINVAL)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, uapi.DefaultExchangeTimeout)
		defer cancel()
	}
	_ = channel.SetDeadline(time.Time{}) // of the caller's use before
	stop := context.AfterFunc(ctx, func() { _ = channel.Close() })
	c, err := make(ctx)
	if !stop() { // it is closed, or about to be
		if err == nil {
			_ = c.Abort()
		}
		return nil, errors.Join(ctx.Err(), err)
	}
	if err != nil {
		_ = channel.Close()
		return nil, err
	}
	return c, nil
}

// connectOver makes the queue pair, has ready say so to a peer that waits for
// it, and connects. If it fails, everything is given back.
func (c *Conn) connectOver(ctx context.Context, channel net.Conn, ready func() error) (err error) {
	device := c.memory.device
	made := false
	defer func() {
		if err != nil && made {
			err = errors.Join(err, device.DestroyQP(c.qp))
		}
		if err != nil {
			err = errors.Join(err, c.memory.free())
		}
	}()
	if c.qp, err = device.CreateQPWith(c.config.queuePair(c.memory)); err != nil {
		return err
	}
	made = true
	c.memory.enter(c.qp, c)
	local, err := device.LocalEndpoint(c.qp) // receives may be posted then
	if err == nil {
		err = c.postReceives()
	}
	if err == nil && ready != nil {
		err = ready()
	}
	var peer uapi.Introduction
	if err == nil {
		peer, err = device.ConnectOver(ctx, channel, c.qp, nil, nil)
	}
	if err != nil {
		return err
	}
	c.channel, c.silent = channel, make(chan struct{})
	err = c.open(uapi.ConnInfo{LocalAddr: local.Addr, RemoteAddr: peer.Endpoint.Addr})
	if err == nil {
		go c.listen()
	}
	return err
}

// listen ends the connection when the channel ends, over which nothing more is
// said.
func (c *Conn) listen() {
	defer close(c.silent)
	_, err := c.channel.Read(make([]byte, 1))
	switch {
	case c.life.Err() != nil: // this end has closed it
		return
	case err == nil:
		err = fmt.Errorf("the peer spoke on it: %w", syscall.EPROTO)
	}
	c.done(fmt.Errorf("msgring: the channel to %v ended: %w (%w)", c.channel.RemoteAddr(), uapi.ErrPeerDisconnected, err))
}

// disconnect tells the peer that the connection has ended.
func (c *Conn) disconnect() error {
	if c.channel == nil {
		return c.memory.device.Disconnect(c.qp)
	}
	_ = c.channel.Close() // an error says that it has ended before
	<-c.silent
	return nil
}

// The records of an exchange, numbers big-endian:
//
//	0  "RDMX"
//	4  u8  version, 1
//	5  u8  kind: 1 hello, 2 refusal
//	6  u16 bytes that follow, at most 256
//
// The dialer says its hello; the acceptor answers with its own, or refuses. The
// frames of uapi.Device.ConnectOver follow the hellos.
const (
	recordMagic   = "RDMX"
	recordVersion = 1
	recordHeader  = 8
	recordLongest = 256
	recordHello   = 1
	recordRefusal = 2
)

func writeRecord(w io.Writer, kind byte, payload []byte) error {
	b := append([]byte(recordMagic), recordVersion, kind)
	b = binary.BigEndian.AppendUint16(b, uint16(len(payload)))
	_, err := w.Write(append(b, payload...))
	return err
}

// readRecord reads one record and not a byte more.
func readRecord(r io.Reader) (kind byte, payload []byte, err error) {
	var head [recordHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, hungUp(err)
	}
	n := binary.BigEndian.Uint16(head[6:])
	switch {
	case string(head[:4]) != recordMagic:
		return 0, nil, fmt.Errorf("msgring: the peer sent %q, not a record of an exchange: is that the right port? %w", head[:4], syscall.EPROTO)
	case head[4] != recordVersion:
		return 0, nil, fmt.Errorf("msgring: the peer speaks version %d of the exchange, this end %d: %w", head[4], recordVersion, syscall.EPROTONOSUPPORT)
	case n > recordLongest:
		return 0, nil, fmt.Errorf("msgring: the peer announces a record of %d bytes; it has at most %d: %w", n, recordLongest, syscall.EPROTO)
	}
	payload = make([]byte, n)
	if _, err = io.ReadFull(r, payload); err != nil {
		return 0, nil, hungUp(err)
	}
	return head[5], payload, nil
}

// readAnswer reads the peer's hello, or its refusal as an error.
func readAnswer(r io.Reader, peer *core.Hello) error {
	kind, b, err := readRecord(r)
	switch {
	case err != nil:
		return err
	case kind == recordHello:
		return protocol(peer.Parse(b, true))
	case kind != recordRefusal:
		return fmt.Errorf("msgring: the peer sent record %d where its answer is due: %w", kind, syscall.EPROTO)
	}
	if refusal, ok := core.ParseRefusal(b); ok {
		return fmt.Errorf("msgring: %w: %w", uapi.ErrRefused, refusal)
	}
	return fmt.Errorf("msgring: %w, and the peer does not say why", uapi.ErrRefused)
}

func hungUp(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("msgring: the peer hung up during the exchange: %w", io.ErrUnexpectedEOF)
	}
	return err
}
