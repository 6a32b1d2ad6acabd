package sample

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/samplepb"
	"github.com/rdmashim/rdmashim/uapi/rpc"
)

func kvCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kv",
		Short: fmt.Sprintf("Keep values by key, by calls of gRPC over RDMA (port %d)", kvPort),
		Long: `A service that keeps values of up to 64 MiB in memory, and its client: Put, Get
and Delete are unary calls, and Scan is a stream.`,
		Example: "  rdmashim sample kv server\n  rdmashim sample kv client 127.0.0.1 put greeting hello.txt",
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(kvServer(), kvClient())
	return cmd
}

func kvServer() *cobra.Command {
	s := &service{}
	var most int64
	cmd := &cobra.Command{
		Use:     "server",
		Short:   "Serve the store until ended; prints 'listening ADDR:PORT'",
		Example: "  rdmashim sample kv server --listen 192.0.2.7:7476",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if most < 1 {
				return cli.Usagef("--max-bytes %d: a store holds at least 1", most)
			}
			s.register = func(r grpc.ServiceRegistrar) { samplepb.RegisterStoreServer(r, newStore(most)) }
			return s.run(cmd, rpc.ServerConfig{MaxReceive: kvMessage, MaxSend: kvMessage})
		},
	}
	s.flags(cmd, kvPort)
	cli.BytesVar(cmd.Flags(), &most, "max-bytes", "", 512<<20, "most bytes of all keys and values")
	return cmd
}

// kvUse is a client's operations, each with the number of its arguments.
type kvUse struct {
	least, most int
	do          func(ctx context.Context, c samplepb.StoreClient, args []string, in io.Reader, out io.Writer) error
}

var kvUses = map[string]kvUse{"put": {1, 2, kvPut}, "get": {1, 2, kvGet}, "delete": {1, 1, kvDelete}, "scan": {0, 1, kvScan}}

func kvClient() *cobra.Command {
	c := &caller{words: "sample kv server"}
	cmd := &cobra.Command{
		Use:   "client HOST[:PORT] put KEY [FILE] | get KEY [FILE] | delete KEY | scan [PREFIX]",
		Short: "Put, get, delete or list values",
		Long: `Put the bytes of FILE, or of standard input; get them, into FILE or to standard
output; delete a key; list the keys with a prefix and the sizes of their values.`,
		Example: `  echo hello | rdmashim sample kv client 127.0.0.1 put greeting
  rdmashim sample kv client 127.0.0.1 get greeting
  rdmashim sample kv client 127.0.0.1 scan gre
  rdmashim sample kv client 127.0.0.1 delete greeting`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Usagef("%s needs the server's HOST, and put, get, delete or scan", cli.Words(cmd))
			}
			use, ok := kvUses[args[1]]
			if n := len(args) - 2; !ok || n < use.least || n > use.most {
				return cli.Usagef("%s: want put KEY [FILE], get KEY [FILE], delete KEY or scan [PREFIX] behind HOST", cli.Words(cmd))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			conn, done, err := c.dial(cmd, peer.HostPort(args[0], kvPort), grpc.MaxCallRecvMsgSize(kvMessage), grpc.MaxCallSendMsgSize(kvMessage))
			if err != nil {
				return err
			}
			err = kvUses[args[1]].do(cmd.Context(), samplepb.NewStoreClient(conn), args[2:], cmd.InOrStdin(), cmd.OutOrStdout())
			return errors.Join(c.reached(err), done())
		},
	}
	c.device.Add(cmd)
	return cmd
}

func kvPut(ctx context.Context, c samplepb.StoreClient, args []string, in io.Reader, out io.Writer) error {
	if len(args) == 2 {
		f, err := os.Open(args[1])
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	value, err := io.ReadAll(io.LimitReader(in, kvMaxValue+1))
	if err != nil {
		return fmt.Errorf("read the value: %w", err)
	}
	if len(value) > kvMaxValue {
		return fmt.Errorf("the value of %q has more than %d bytes", args[0], kvMaxValue)
	}
	r, err := c.Put(ctx, &samplepb.PutRequest{Key: args[0], Value: value})
	if err != nil {
		return err
	}
	word := "put"
	if r.Replaced {
		word = "replaced"
	}
	_, err = fmt.Fprintf(out, "%s %s: %d bytes\n", word, args[0], len(value))
	return err
}

func kvGet(ctx context.Context, c samplepb.StoreClient, args []string, _ io.Reader, out io.Writer) error {
	r, err := c.Get(ctx, &samplepb.GetRequest{Key: args[0]})
	if err != nil {
		return err
	}
	if len(args) == 2 {
		return os.WriteFile(args[1], r.Value, 0o666)
	}
	_, err = out.Write(r.Value)
	return err
}

func kvDelete(ctx context.Context, c samplepb.StoreClient, args []string, _ io.Reader, _ io.Writer) error {
	_, err := c.Delete(ctx, &samplepb.DeleteRequest{Key: args[0]})
	return err
}

func kvScan(ctx context.Context, c samplepb.StoreClient, args []string, _ io.Reader, out io.Writer) error {
	s, err := c.Scan(ctx, &samplepb.ScanRequest{Prefix: append(args, "")[0]})
	for err == nil {
		var r *samplepb.ScanReply
		if r, err = s.Recv(); err == nil {
			_, err = fmt.Fprintf(out, "%s %d\n", r.Key, r.Bytes)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
