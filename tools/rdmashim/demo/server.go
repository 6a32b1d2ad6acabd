package demo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/uapi"
)

const (
	// job is the server's and the client's on the control connection.
	job = "server"
	// defaultPort is where the server listens for control connections.
	defaultPort = 7471
	// messageSize is the room for a message of the other side.
	messageSize = 4096
	// counterSize is the word behind the file that the atomics count in.
	counterSize = 8
)

// wishes are the client's requests in its hello.
type wishes struct {
	Name  string `json:"name"`
	Bytes int64  `json:"bytes"`
}

// goodbye is the client's last message: the transfer is complete.
type goodbye struct {
	OK bool `json:"ok"`
}

// farewell answers goodbye.
type farewell struct {
	Counters map[string]uint64 `json:"counters"`
}

// ServerCommand is 'rdmashim server'.
func ServerCommand() *cobra.Command {
	s := &peer.Server{Job: job, Serve: serve}
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Serve clients of this tool until ended",
		Long: `Serve 'rdmashim client' until ended: give each client memory of the size that it
asks for, to write, read and count in by RDMA, and tell it the digest of what
arrived. Prints 'listening ADDR:PORT'.

Without --device each client is served on the soft device of the address that it
connected to; those that are free are opened at once. Clients can make the
server allocate up to --max-bytes each and --max-total together.

It listens on this machine only: to serve others, name an address of it, as in
--listen 192.0.2.7:7471, or all of them by --listen :7471. Anybody who reaches
that is a client.`,
		Example: "  rdmashim server\n  rdmashim server --listen :7471 --max-total 8000000000",
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.Run(cmd) },
	}
	s.AddFlags(cmd)
	cmd.Flags().StringVar(&s.Listen, "listen", fmt.Sprintf("127.0.0.1:%d", defaultPort), "address of the control connection, ADDR:PORT; port 0 takes a free one")
	return cmd
}

// server is the passive side: memory that a client writes, reads and counts in,
// and one message each way.
type server struct {
	peer.Endpoint
	*peer.Session
	wishes wishes
	file   peer.Memory // the client's bytes, padded, and the counter
	msg    peer.Memory // received message, then the answer
}

// serve serves one client from its hello to its goodbye.
func serve(ctx context.Context, c *peer.Session) error {
	s := &server{Session: c}
	err := s.prepare()
	if err != nil {
		err = c.Refuse(err)
	} else if err = s.transfer(ctx); err != nil {
		err = fmt.Errorf("the transfer of %q (%s) was not completed and is lost: %w", s.wishes.Name, cli.Size(s.wishes.Bytes), peer.Cause(ctx, err))
	}
	return errors.Join(err, s.Endpoint.Close())
}

// prepare makes the memory and the queue pair.
func (s *server) prepare() (err error) {
	if err = s.Params(&s.wishes); err != nil {
		return err
	}
	if err = s.Charge(s.wishes.Bytes, 0); err != nil {
		return err
	}
	if err = s.Share(s.Device); err != nil {
		return err
	}
	padded := (int(s.wishes.Bytes) + counterSize - 1) / counterSize * counterSize
	s.file, err = s.Alloc(padded+counterSize, uapi.AccessLocalWrite|uapi.AccessRemoteWrite|uapi.AccessRemoteRead|uapi.AccessRemoteAtomic)
	if err != nil {
		return err
	}
	if s.msg, err = s.Alloc(messageSize, uapi.AccessLocalWrite); err != nil {
		return err
	}
	if err = s.CreateQP(2, 2); err != nil {
		return err
	}
	_, err = s.RDMA.PostRecv(s.QP, s.msg.MR, 0, messageSize)
	return err
}

// transfer lets the client work until it says goodbye.
func (s *server) transfer(ctx context.Context) error {
	if err := s.Welcome(); err != nil {
		return err
	}
	if _, err := s.Connect(ctx, s.Conn, s.file.MR); err != nil {
		return err
	}
	s.EndIdle(ctx, 0, s.QP)
	running, came := s.Watch(ctx, new(goodbye), nil)
	if err := s.answer(running); err != nil {
		return err
	}
	if err := came(); err != nil {
		return err
	}
	counters, err := s.RDMA.Counters()
	if err != nil {
		return err
	}
	return s.Send(farewell{counters})
}

// answer waits for the client's message, which says by its immediate how many
// requests wrote the bytes, and answers with the digest of what lies in memory.
func (s *server) answer(ctx context.Context) error {
	wc, err := s.Next(ctx, "wait for the client's message")
	if err != nil {
		return err
	}
	if wc.Flags&uapi.WCWithImm == 0 {
		return errors.New("the client's message has no immediate")
	}
	sum := sha256.Sum256(s.file.Buf[:s.wishes.Bytes])
	n := copy(s.msg.Buf, hex.EncodeToString(sum[:]))
	if _, err := s.RDMA.PostSendImm(s.QP, s.msg.MR, uint64(n), wc.Imm); err != nil {
		return err
	}
	_, err = s.Next(ctx, "send the digest")
	return err
}
