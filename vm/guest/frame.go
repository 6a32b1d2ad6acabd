package guest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// PortName is the name of the virtio serial port that carries the frames.
const PortName = "rdmashim.control"

// Version is the protocol's version; host and guest must agree.
const Version = 6

// MaxPayload is the largest payload of a frame, in bytes.
const MaxPayload = 32 << 10

const frameHeader = 5 // kind, length

// ErrFrame says that the other side sent something that is no frame.
var ErrFrame = errors.New("malformed frame")

// Kind is the kind of a frame.
type Kind uint8

// The kinds of frames. Those from the guest: Hello, Log, Stdout, Stderr,
// StdinWant, Done. Those from the host: Setup, Exec, Stdin, StdinEnd, Quit,
// Push, Data, DataEnd, Pull, PowerOff.
const (
	KindHello     Kind = 1 + iota // Hello
	KindLog                       // text of the kernel's log
	KindSetup                     // Setup
	KindExec                      // Exec
	KindStdin                     // bytes
	KindStdinEnd                  // nothing
	KindStdinWant                 // nothing: the next KindStdin may be sent
	KindStdout                    // bytes
	KindStderr                    // bytes
	KindPush                      // Push, then Data…, DataEnd
	KindPull                      // Pull, which Stdout answers with a tar
	KindData                      // bytes of a tar
	KindDataEnd                   // nothing
	KindDone                      // Done
	KindPowerOff                  // nothing
	KindQuit                      // nothing: SIGQUIT for the command
	kindEnd
)

// Conn reads and writes frames. One goroutine may read; any number may write.
type Conn struct {
	r io.Reader

	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// NewConn returns a Conn on a stream.
func NewConn(rw io.ReadWriter) *Conn { return &Conn{r: rw, w: rw} }

// Read returns the next frame. It fails with io.EOF between frames,
// io.ErrUnexpectedEOF within one, and ErrFrame for bytes that are no frame.
func (c *Conn) Read() (Kind, []byte, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(c.r, head[:]); err != nil {
		return 0, nil, err
	}
	kind, n := Kind(head[0]), binary.BigEndian.Uint32(head[1:])
	if kind == 0 || kind >= kindEnd || n > MaxPayload {
		return 0, nil, fmt.Errorf("%w: kind %d, %d bytes", ErrFrame, kind, n)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(c.r, payload); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, nil, err
	}
	return kind, payload, nil
}

// Write sends bytes, in as many frames of the kind as they need.
func (c *Conn) Write(kind Kind, payload []byte) error {
	for {
		n := min(len(payload), MaxPayload)
		if err := c.writeFrame(kind, payload[:n]); err != nil {
			return err
		}
		if payload = payload[n:]; len(payload) == 0 {
			return nil
		}
	}
}

func (c *Conn) writeFrame(kind Kind, payload []byte) error {
	frame := make([]byte, frameHeader, frameHeader+len(payload))
	frame[0] = byte(kind)
	binary.BigEndian.PutUint32(frame[1:], uint32(len(payload)))
	frame = append(frame, payload...)
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := c.w.Write(frame)
	return err
}

// WriteMessage sends a message as JSON in one frame.
func (c *Conn) WriteMessage(kind Kind, message any) error {
	payload, err := json.Marshal(message)
	if err != nil {
		return err
	}
	if len(payload) > MaxPayload {
		return fmt.Errorf("message of %d bytes is larger than %d: shorten the arguments or the environment", len(payload), MaxPayload)
	}
	return c.writeFrame(kind, payload)
}

// Writer returns an io.Writer whose bytes leave as frames of the kind.
func (c *Conn) Writer(kind Kind) io.Writer { return frameWriter{c, kind} }

type frameWriter struct {
	c    *Conn
	kind Kind
}

func (w frameWriter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := w.c.Write(w.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}
