package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

// options are the client's and the demo's.
type options struct {
	cli.DeviceFlags
	asJSON bool
	limit  int64 // bytes of the file to send; 0: all
}

func (o *options) add(cmd *cobra.Command) {
	o.Add(cmd)
	cli.JSONFlag(cmd, &o.asJSON)
}

// ClientCommand is 'rdmashim client'.
func ClientCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT] [FILE]",
		Short: "Write a file into a server's memory by RDMA and read it back",
		Long: `Write FILE (default: this program's own) into the memory of 'rdmashim server' on
HOST by RDMA WRITE, send a message with an immediate, do an atomic, read
everything back by RDMA READ and compare.

Without --device the soft device on the route's source address is used.`,
		Example: "  rdmashim client 192.0.2.7 FILE\n  rdmashim client 127.0.0.1:7471 FILE --loss 1% --seed 7",
		Args:    cli.Host(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr := peer.HostPort(args[0], defaultPort)
			r, err := run(cmd.Context(), addr, serverThere(addr), append(args, "")[1], o, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return cli.Print(cmd.OutOrStdout(), o.asJSON, r, r.text)
		},
	}
	o.add(cmd)
	return cmd
}

// serverThere is the command that serves clients at addr, HOST:PORT. Without
// --listen it serves those of its own machine only.
func serverThere(addr string) string {
	host, port, _ := net.SplitHostPort(addr)
	if a, err := netip.ParseAddr(host); host == "localhost" || err == nil && a.IsLoopback() {
		return "rdmashim server"
	}
	return "rdmashim server --listen :" + port
}

// openSource opens the file to send; an empty path is this program's own.
func openSource(path string) (*os.File, int64, error) {
	if path == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, 0, fmt.Errorf("find this program's file: %w", err)
		}
		path = self
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file, so its size is not known beforehand", path)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// client is the active side: it writes a file into the server's memory, sends a
// message, counts, and reads everything back.
type client struct {
	peer.Endpoint
	*peer.Client
	file   *os.File
	bytes  int64
	stderr io.Writer

	mem    peer.Memory // depth chunks, then the message, then an atomic's old value
	remote uapi.Region
	report Report
}

const (
	messageAt = depth * chunk
	oldAt     = messageAt + messageSize
	clientMem = oldAt + counterSize
)

// run does the whole job against the server at addr, with start as of
// peer.Dial.
func run(ctx context.Context, addr, start, path string, o options, stderr io.Writer) (*Report, error) {
	o.ChooseSeed()
	file, bytes, err := openSource(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if o.limit > 0 {
		bytes = min(bytes, o.limit)
	}
	p, err := peer.Dial(ctx, addr, start, &o.DeviceFlags, stderr, uapi.OpenConfig{})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	s := &client{Endpoint: peer.Endpoint{RDMA: p.Device}, Client: p, file: file, bytes: bytes, stderr: stderr}
	s.report = Report{File: file.Name(), Bytes: bytes, ClientPID: os.Getpid(), ClientDevice: p.Own, Seed: o.Seed}
	if err := errors.Join(s.run(ctx), s.Endpoint.Close()); err != nil {
		return nil, err
	}
	return &s.report, s.report.check()
}

// run greets, connects, transfers and says goodbye.
func (s *client) run(ctx context.Context) error {
	regions, err := s.connect(ctx)
	if err != nil {
		return err
	}
	if len(regions) != 1 || regions[0].Length < uint64(s.bytes)+counterSize {
		return errors.New("the server offered no memory of the size that was asked for")
	}
	s.remote = regions[0]
	s.report.Way = peer.Way(s.RDMA, s.QP)
	// Nothing comes before the farewell: that it ends earlier means that the
	// server has gone.
	var last farewell
	running, came := s.Watch(ctx, &last, nil)
	if err := s.transfer(running); err != nil {
		var wc *uapi.WCError
		if gone := s.EndOf(came, err); gone != nil {
			return fmt.Errorf("%w: %w", err, gone)
		} else if !errors.As(err, &wc) && errors.Is(context.Cause(running), peer.ErrGone) {
			return s.probe(err)
		}
		return err
	}
	counters, err := s.RDMA.Counters()
	if err != nil {
		return err
	}
	if err = s.Send(goodbye{OK: true}); err == nil {
		s.Expect(peer.Silence)
		err = came()
	}
	if err != nil {
		return fmt.Errorf("the server's counters are lost: %w", s.probe(err))
	}
	s.report.Client, s.report.Server = counters, last.Counters
	return nil
}

// connect tells the server what is to come, makes buffers and queue pair, and
// connects them.
func (s *client) connect(ctx context.Context) ([]uapi.Region, error) {
	err := s.Greet(job, wishes{s.file.Name(), s.bytes}, peer.Silence, func() (err error) {
		if s.mem, err = s.Alloc(clientMem, uapi.AccessLocalWrite); err != nil {
			return err
		}
		// One send more than the pipeline uses, for the probe of a silent
		// server.
		if err = s.CreateQP(depth+1, 2); err != nil {
			return err
		}
		_, err = s.RDMA.PostRecv(s.QP, s.mem.MR, messageAt, messageSize)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.report.ServerPID, s.report.ServerDevice = s.Server.PID, s.Server.Device
	return s.Connect(ctx, s.Conn)
}

// transfer is the part that RDMA does.
func (s *client) transfer(ctx context.Context) (err error) {
	r := &s.report
	if r.WriteSeconds, r.Goodput, r.SHA256Source, err = s.move(ctx, "WRITE", &r.writes); err != nil {
		return err
	}
	if err := s.message(ctx); err != nil {
		return err
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	r.ReadSeconds, r.ReadGoodput, r.SHA256Readback, err = s.move(ctx, "READ", &r.reads)
	return err
}

// move writes the file or reads it back, and gives the digest of what was
// moved.
func (s *client) move(ctx context.Context, what string, requests *int) (seconds, goodput float64, digest string, err error) {
	hash := sha256.New()
	p := &pipeline{rdma: s.RDMA, qp: s.QP, mr: s.mem.MR, buf: s.mem.Buf[:messageAt], remote: s.remote}
	p.bar = cli.NewProgress(s.stderr, what, s.bytes)
	defer p.bar.Done()
	start := time.Now()
	if what == "WRITE" {
		*requests, err = p.write(ctx, io.TeeReader(s.file, hash), s.bytes)
	} else {
		*requests, err = p.read(ctx, hash, s.bytes)
	}
	seconds = max(time.Since(start).Seconds(), 1e-9)
	return seconds, float64(s.bytes) / seconds, hex.EncodeToString(hash.Sum(nil)), err
}

// message tells the server that the bytes are there, with the number of
// requests as the immediate, and takes the digest of what it sees.
func (s *client) message(ctx context.Context) error {
	imm := uint32(s.report.writes)
	text := fmt.Sprintf("%d bytes of %s are in your memory", s.bytes, s.file.Name())
	n := copy(s.mem.Buf[:messageSize], text)
	if _, err := s.RDMA.PostSendImm(s.QP, s.mem.MR, uint64(n), imm); err != nil {
		return err
	}
	for range 2 { // the send, and the answer
		wc, err := s.Next(ctx, "message to the server and its answer")
		if err != nil {
			return err
		}
		if wc.Opcode != uapi.WCOpRecv {
			continue
		}
		if wc.Flags&uapi.WCWithImm == 0 || wc.Imm != imm {
			return fmt.Errorf("the server's answer carries the immediate %#x, not %#x", wc.Imm, imm)
		}
		s.report.SHA256Server = string(s.mem.Buf[messageAt : messageAt+min(wc.ByteLen, messageSize)])
	}
	return nil
}

// count adds to the word behind the file twice and sees the first addition.
func (s *client) count(ctx context.Context) error {
	word, err := s.remote.Slice(s.remote.Length-counterSize, counterSize)
	if err != nil {
		return err
	}
	old, err := uapi.Uint64At(s.mem.Buf, oldAt)
	if err != nil {
		return err
	}
	add := func(n uint64) (uint64, error) {
		if _, err := s.RDMA.FetchAdd(s.QP, uapi.SGE{MR: s.mem.MR, Offset: oldAt, Length: counterSize}, word, n); err != nil {
			return 0, err
		}
		_, err := s.Next(ctx, "atomic fetch-and-add")
		return old.Load(), err
	}
	r, n := &s.report, uint64(s.report.writes)+1
	if r.AtomicBefore, err = add(n); err != nil {
		return err
	}
	if r.AtomicAfter, err = add(0); err != nil {
		return err
	}
	if want := r.AtomicBefore + n; r.AtomicAfter != want {
		return fmt.Errorf("the atomic counter is %d, not %d", r.AtomicAfter, want)
	}
	return nil
}

// probe asks the queue pair whether the server is still there, with a write of
// no bytes, and adds its verdict to err: RETRY_EXC_ERR for a server that died,
// nothing for one that only closed the control connection.
func (s *client) probe(err error) error {
	ctx, cancel := context.WithTimeout(context.Background(), peer.Silence-time.Second)
	defer cancel()
	// The queue may hold requests that the same silence ends.
	_, _ = s.RDMA.Write(s.QP, uapi.SGE{MR: s.mem.MR}, s.remote)
	wc := make([]uapi.WC, depth+1)
	for {
		n, waitErr := s.RDMA.WaitCQ(ctx, s.QP, wc)
		if waitErr != nil {
			return err
		}
		for _, c := range wc[:n] {
			if bad := c.Err(); bad != nil {
				return fmt.Errorf("%w: %w", err, bad)
			}
			if c.Opcode == uapi.WCOpWrite && c.ByteLen == 0 {
				return err
			}
		}
	}
}
