package sample

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi"
)

// ping is rping of librdmacm: the client tells where its data is (SEND), the
// server reads it (READ) and says so (SEND), the client tells where it goes
// back to (SEND), the server writes it there (WRITE) and says so (SEND).
const (
	pingPort    = 7174
	pingInfo    = 16 // struct rping_rdma_info: address, key and length, big-endian
	pingMinSize = 20 // so that each ping has its number in it
	pingMaxSize = 64 << 10
	pingDefault = 64

	// The memory of an end: the message received, the one to send, the data,
	// and at the client the place to which the data comes back.
	pingRecvAt = 0
	pingSendAt = 64
	pingDataAt = 1024
	pingBackAt = pingDataAt + pingMaxSize
	pingMemory = pingBackAt + pingMaxSize
)

type ping struct {
	count, size int
	verbose     bool
}

// PingCommand is 'rdmashim ping'.
func PingCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Send verified data to and fro by RDMA, as rping",
		Long: `Connect by address and port and let the server read the client's data by RDMA
READ and write it back by RDMA WRITE; the client compares. Either end may be
rping of librdmacm.`,
		Example: "  rdmashim ping server\n  rdmashim ping client 127.0.0.1",
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	p := &ping{}
	server, client := addRoles(cmd, p, "ping", pingPort)
	server.Flags().BoolVarP(&p.verbose, "verbose", "v", false, "print what was read")
	f := client.Flags()
	f.IntVarP(&p.count, "count", "C", 10, "how many pings")
	cli.BytesVar(f, &p.size, "size", "S", pingDefault, "bytes of each")
	f.BoolVarP(&p.verbose, "verbose", "v", false, "print what came back")
	client.PreRunE = func(*cobra.Command, []string) error {
		if p.size < pingMinSize || p.size > pingMaxSize || p.count < 1 {
			return cli.Usagef("want a size of %d … %d bytes and a count of at least 1", pingMinSize, pingMaxSize)
		}
		return nil
	}
	return cmd
}

var pingQP = uapi.QPConfig{SendDepth: 16, RecvDepth: 2, MaxRdAtomic: 1}

func (c *conn) pingPiece(at, n int) []uapi.SGE {
	return []uapi.SGE{{MR: c.Memory[0].MR, Offset: uint64(at), Length: uint64(n)}}
}

// pingReceive makes ready for the peer's next word.
func (c *conn) pingReceive() error {
	_, err := c.RDMA.Post(c.QP, []uapi.WR{{Op: uapi.OpRecv, SGE: c.pingPiece(pingRecvAt, pingInfo)}})
	return err
}

// pingWork posts a request and takes completions until it and, if hears is set,
// a receive have completed. They may come in either order.
func (c *conn) pingWork(ctx context.Context, what string, wr *uapi.WR, hears bool) error {
	left := 0
	if wr != nil {
		left++
		wr.Flags = uapi.Signaled
		if _, err := c.RDMA.Post(c.QP, []uapi.WR{*wr}); err != nil {
			return err
		}
	}
	if hears {
		left++
	}
	for ; left > 0; left-- {
		wc, err := c.Next(ctx, what)
		if err != nil {
			return c.ended(err)
		}
		if wc.Opcode == uapi.WCOpRecv && wc.ByteLen != pingInfo {
			return fmt.Errorf("%s: the peer's word has %d bytes, not %d", what, wc.ByteLen, pingInfo)
		}
	}
	return nil
}

// pingSay is a word to the peer: where data is, or that it is done.
func (c *conn) pingSay(info []byte) *uapi.WR {
	copy(c.Memory[0].Buf[pingSendAt:pingSendAt+pingInfo], info)
	return &uapi.WR{Op: uapi.OpSend, SGE: c.pingPiece(pingSendAt, pingInfo)}
}

// accept makes ready for the first word.
func (p *ping) accept(ctx context.Context, c *conn, r *uapi.Request) error {
	// It reads and writes the client's memory; its own is not reachable.
	if _, err := c.Alloc(pingBackAt, uapi.AccessLocalWrite); err != nil {
		return err
	}
	return c.accepted(ctx, r, pingQP, c.pingReceive, nil)
}

// answer serves until the client leaves. A client leaves when it has heard the
// last word of a ping, whose acknowledgement may come after its farewell: then
// completions of that word may still come, and none is taken for the client's.
func (p *ping) answer(ctx context.Context, c *conn) error {
	n, leaves := 0, false
	for ; !leaves; n++ {
		err := c.pingWork(ctx, "where the data is", nil, true)
		if uapi.StatusOf(err) == uapi.WCWRFlushErr && n > 0 {
			break
		}
		if err != nil {
			return err
		}
		if err := p.pong(ctx, c); err != nil {
			return fmt.Errorf("ping %d: %w", n, err)
		}
		err = c.pingWork(ctx, "last word", c.pingSay(make([]byte, pingInfo)), false)
		leaves = uapi.StatusOf(err) == uapi.WCWRFlushErr || errors.Is(err, uapi.ErrPeerDisconnected)
		if err != nil && !leaves {
			return fmt.Errorf("ping %d: %w", n, err)
		}
	}
	if err := c.peerLeaves(ctx); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "client %v: %d pings\n", c.info.RemoteAddr, n)
	return nil
}

// pong reads the client's message and writes it back. It does not say so.
func (p *ping) pong(ctx context.Context, c *conn) error {
	buf := c.Memory[0].Buf
	move := func(op uapi.Op, at uint64, key uint32, n int) *uapi.WR {
		return &uapi.WR{Op: op, RemoteAddr: at, RKey: key, SGE: c.pingPiece(pingDataAt, n)}
	}
	at, key, n, err := c.pingPlace()
	if err != nil {
		return err
	}
	if err := c.pingReceive(); err != nil {
		return err
	}
	if err := c.pingWork(ctx, "READ", move(uapi.OpRead, at, key, n), false); err != nil {
		return err
	}
	if !bytes.HasPrefix(buf[pingDataAt:], []byte("rdma-ping-")) {
		return fmt.Errorf("the client's data begins with %q, not with rdma-ping-", text(buf[pingDataAt:pingDataAt+n]))
	}
	if p.verbose {
		fmt.Fprintf(c.out, "ping data: %s\n", text(buf[pingDataAt:pingDataAt+n]))
	}
	if err := c.pingWork(ctx, "where the data goes", c.pingSay(make([]byte, pingInfo)), true); err != nil {
		return err
	}
	back, backKey, room, err := c.pingPlace()
	if err != nil {
		return err
	}
	if err := c.pingReceive(); err != nil {
		return err
	}
	return c.pingWork(ctx, "WRITE", move(uapi.OpWrite, back, backKey, min(n, room)), false)
}

// pingPlace is the memory that the peer has named.
func (c *conn) pingPlace() (at uint64, key uint32, n int, err error) {
	info := c.Memory[0].Buf[pingRecvAt:]
	length := binary.BigEndian.Uint32(info[12:])
	if length > pingMaxSize {
		return 0, 0, 0, fmt.Errorf("the client has %d bytes; the most are %d", length, pingMaxSize)
	}
	return binary.BigEndian.Uint64(info), binary.BigEndian.Uint32(info[8:]), int(length), nil
}

func (p *ping) dial(ctx context.Context, c *conn, addr string) error {
	if _, err := c.Alloc(pingMemory, sampleAccess); err != nil {
		return err
	}
	return c.connected(ctx, addr, uapi.DialConfig{QPConfig: pingQP, Prepare: func(qp uapi.QP) error {
		c.QP = qp
		return c.pingReceive()
	}})
}

// ask pings.
func (p *ping) ask(ctx context.Context, c *conn) error {
	buf := c.Memory[0].Buf
	info, err := c.RDMA.QueryMR(c.Memory[0].MR)
	if err != nil {
		return err
	}
	place := func(at int) *uapi.WR {
		b := binary.BigEndian.AppendUint64(nil, info.Addr+uint64(at))
		return c.pingSay(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, info.RKey), uint32(p.size)))
	}
	for n := range p.count {
		data, back := buf[pingDataAt:pingDataAt+p.size], buf[pingBackAt:pingBackAt+p.size]
		fillPing(data, n)
		clear(back)
		for i, at := range []int{pingDataAt, pingBackAt} {
			if n+i > 0 { // the first receive was posted before the connection
				if err := c.pingReceive(); err != nil {
					return err
				}
			}
			if err := c.pingWork(ctx, fmt.Sprintf("ping %d", n), place(at), true); err != nil {
				return err
			}
		}
		if !bytes.Equal(data, back) {
			return fmt.Errorf("ping %d: %q came back, not %q", n, text(back), text(data))
		}
		if p.verbose {
			fmt.Fprintf(c.out, "ping data: %s\n", text(back))
		}
	}
	fmt.Fprintf(c.out, "%d pings of %d bytes to %v: verified\n", p.count, p.size, c.info.RemoteAddr)
	return nil
}

// fillPing makes data as rping does: its number, then printable characters that
// move on with it, and a zero.
func fillPing(b []byte, n int) {
	at := copy(b, fmt.Sprintf("rdma-ping-%d: ", n))
	const first, last = 'A', 'z'
	for i := at; i < len(b); i++ {
		b[i] = byte(first + (n+i-at)%(last-first+1))
	}
	b[len(b)-1] = 0
}
