package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

// ping is rping of librdmacm: the client tells where its data is (SEND), the server reads it (READ) and says
// so (SEND), the client tells where it goes back to (SEND), the server writes it there (WRITE) and says so (SEND).
const (
	pingPort    = 7174
	pingInfo    = 16 // struct rping_rdma_info: address, key and length, big-endian
	pingMinSize = 20 // so that each ping has its number in it
	pingMaxSize = 64 << 10
	pingDefault = 64

	// The memory of an end: the message received, the one to send, the data, and
	// at the client the place to which the data comes back.
	pingRecvAt = 0
	pingSendAt = 64
	pingDataAt = 1024
	pingBackAt = pingDataAt + pingMaxSize
	pingMemory = pingBackAt + pingMaxSize
)

type pingOptions struct {
	cmOptions
	count, size int
	verbose     bool
}

func newPing() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ping",
		Short: "Send verified data to and fro by RDMA, as rping",
		Long: `Connect by address and port and let the server read the client's data by RDMA READ and write it back
by RDMA WRITE; the client compares. Either end may be rping of librdmacm.`,
		Example: `  rdmashim ping server
  rdmashim ping client 127.0.0.1`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var server, client pingOptions
	serve := &cobra.Command{
		Use:     "server",
		Short:   "Serve clients until ended; prints 'listening ADDR:PORT'",
		Example: `  rdmashim ping server --once`,
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return serveCM(cmd.Context(), &server.cmOptions, &server, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	server.addServer(serve, pingPort)
	serve.Flags().BoolVarP(&server.verbose, "verbose", "v", false, "print what was read")
	call := &cobra.Command{
		Use:     "client HOST[:PORT]",
		Short:   "Ping a server",
		Example: `  rdmashim ping client 192.0.2.7`,
		Args:    oneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			if client.size < pingMinSize || client.size > pingMaxSize || client.count < 1 {
				return usagef("want a size of %d … %d bytes and a count of at least 1", pingMinSize, pingMaxSize)
			}
			return cmClient(cmd.Context(), &client.cmOptions, args[0], "ping", cmd.OutOrStdout(), cmd.ErrOrStderr(), client.dial, client.call)
		},
	}
	client.addClient(call, pingPort)
	f := call.Flags()
	f.IntVarP(&client.count, "count", "C", 10, "how many pings")
	f.IntVarP(&client.size, "size", "S", pingDefault, "bytes of each")
	f.BoolVarP(&client.verbose, "verbose", "v", false, "print what came back")
	cmd.AddCommand(serve, call)
	return cmd
}

func pingQP() uapi.QPConfig { return uapi.QPConfig{SendDepth: 16, RecvDepth: 2, MaxRdAtomic: 1} }

func (c *cmConn) pingPiece(at, n int) []uapi.SGE {
	return []uapi.SGE{{MR: c.memory[0].mr, Offset: uint64(at), Length: uint64(n)}}
}

// pingReceive makes ready for the peer's next word.
func (c *cmConn) pingReceive() error {
	_, err := c.rdma.Post(c.qp, []uapi.WR{{Op: uapi.OpRecv, SGE: c.pingPiece(pingRecvAt, pingInfo)}})
	return err
}

// pingWork posts a request and takes completions until it and, if hears is set, a receive have completed.
// They may come in either order.
func (c *cmConn) pingWork(ctx context.Context, what string, wr *uapi.WR, hears bool) error {
	left := 0
	if wr != nil {
		left++
		wr.Flags = uapi.Signaled
		if _, err := c.rdma.Post(c.qp, []uapi.WR{*wr}); err != nil {
			return err
		}
	}
	if hears {
		left++
	}
	for ; left > 0; left-- {
		wc, err := c.next(ctx, what)
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
func (c *cmConn) pingSay(info []byte) *uapi.WR {
	copy(c.memory[0].buf[pingSendAt:pingSendAt+pingInfo], info)
	return &uapi.WR{Op: uapi.OpSend, SGE: c.pingPiece(pingSendAt, pingInfo)}
}

// accept makes ready for the first word.
func (o *pingOptions) accept(ctx context.Context, c *cmConn, r *uapi.Request) error {
	// It reads and writes the client's memory; its own is nobody's.
	if _, _, err := c.alloc(pingBackAt, uapi.AccessLocalWrite); err != nil {
		return err
	}
	return c.accepted(ctx, r, pingQP(), c.pingReceive, nil)
}

// talk serves until the client leaves.
func (o *pingOptions) talk(ctx context.Context, c *cmConn) error {
	for n := 0; ; n++ {
		err := c.pingWork(ctx, "where the data is", nil, true)
		if errors.Is(err, uapi.WCWRFlushErr) && n > 0 {
			if err := c.peerLeaves(ctx); err != nil {
				return err
			}
			fmt.Fprintf(c.out, "client %v: %d pings\n", c.info.RemoteAddr, n)
			return nil
		}
		if err != nil {
			return err
		}
		if err := o.pong(ctx, c); err != nil {
			return fmt.Errorf("ping %d: %w", n, err)
		}
	}
}

// pong reads what the client has and writes it back.
func (o *pingOptions) pong(ctx context.Context, c *cmConn) error {
	buf := c.memory[0].buf
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
	if o.verbose {
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
	if err := c.pingWork(ctx, "WRITE", move(uapi.OpWrite, back, backKey, min(n, room)), false); err != nil {
		return err
	}
	err = c.pingWork(ctx, "last word", c.pingSay(make([]byte, pingInfo)), false)
	if errors.Is(err, uapi.ErrPeerDisconnected) {
		return nil // it leaves when it has heard that; the acknowledgement may come after its farewell
	}
	return err
}

// pingPlace is what the peer has told of.
func (c *cmConn) pingPlace() (at uint64, key uint32, n int, err error) {
	info := c.memory[0].buf[pingRecvAt:]
	length := binary.BigEndian.Uint32(info[12:])
	if length > pingMaxSize {
		return 0, 0, 0, fmt.Errorf("the client has %d bytes; the most are %d", length, pingMaxSize)
	}
	return binary.BigEndian.Uint64(info), binary.BigEndian.Uint32(info[8:]), int(length), nil
}

func (o *pingOptions) dial(ctx context.Context, c *cmConn, addr string) error {
	if _, _, err := c.alloc(pingMemory, sampleAccess); err != nil {
		return err
	}
	return c.connected(ctx, addr, uapi.DialConfig{QPConfig: pingQP(), Prepare: func(qp uapi.QP) error {
		c.qp = qp
		return c.pingReceive()
	}})
}

// call pings.
func (o *pingOptions) call(ctx context.Context, c *cmConn) error {
	buf := c.memory[0].buf
	info, err := c.rdma.QueryMR(c.memory[0].mr)
	if err != nil {
		return err
	}
	place := func(at int) *uapi.WR {
		b := binary.BigEndian.AppendUint64(nil, info.Addr+uint64(at))
		return c.pingSay(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, info.RKey), uint32(o.size)))
	}
	for n := range o.count {
		data, back := buf[pingDataAt:pingDataAt+o.size], buf[pingBackAt:pingBackAt+o.size]
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
		if o.verbose {
			fmt.Fprintf(c.out, "ping data: %s\n", text(back))
		}
	}
	fmt.Fprintf(c.out, "%d pings of %d bytes to %v: verified\n", o.count, o.size, c.info.RemoteAddr)
	return nil
}

// fillPing makes data as rping does: its number, then printable characters that move on with it, and a zero.
func fillPing(b []byte, n int) {
	at := copy(b, fmt.Sprintf("rdma-ping-%d: ", n))
	const first, last = 'A', 'z'
	for i := at; i < len(b); i++ {
		b[i] = byte(first + (n+i-at)%(last-first+1))
	}
	b[len(b)-1] = 0
}
