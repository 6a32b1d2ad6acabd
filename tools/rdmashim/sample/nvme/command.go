package nvme

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
	"github.com/rdmashim/rdmashim/tools/rdmashim/sample/diskload"
	"github.com/rdmashim/rdmashim/uapi"
)

// Command is 'rdmashim sample nvme'.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nvme",
		Short: fmt.Sprintf("Disks by NVMe over RDMA, target and host (port %d)", Port),
		Long: `serve is a target: Linux's nvme-rdma mounts its disks. host reads and writes
those of any target, also of Linux's nvmet. Both are doubles for tests of other
NVMe software, which finds in them a peer that needs no root and no card, and
makes faults: --device 'soft:192.0.2.7?loss=1%'.`,
		Example: "  rdmashim sample nvme serve 64M\n  rdmashim sample nvme host 127.0.0.1 --verify",
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(serveCommand(), hostCommand())
	return cmd
}

func serveCommand() *cobra.Command {
	var device cli.DeviceFlags
	var listen string
	var port uint16
	t := &Target{}
	cmd := &cobra.Command{
		Use:   "serve FILE|SIZE...",
		Short: "Serve disks until ended; prints 'listening ADDR:PORT'",
		Long: `Each argument is a namespace, from 1: a file, which keeps its size, or the size
of a disk that is forgotten at the end. Flush means fsync. There is no
authentication: whoever reaches the port reads and writes the disks.`,
		Example: "  rdmashim sample nvme serve disk.img --listen 192.0.2.7",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("%s needs a FILE, or the SIZE of a disk", cli.Words(cmd))
			}
			return t.Seats.Check()
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			log := cli.NewLockedWriter(cmd.ErrOrStderr())
			t.Log = func(format string, a ...any) { fmt.Fprintln(log, cli.Printable(fmt.Sprintf(format, a...))) }
			for _, arg := range args {
				d, err := openDisk(arg)
				if err != nil {
					return err
				}
				defer d.Close()
				t.Disks = append(t.Disks, d)
			}
			l, end, err := peer.Listen(device.Named(), listen, port, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer end()
			return t.Serve(cmd.Context(), l)
		},
	}
	device.AddDevice(cmd)
	f := cmd.Flags()
	f.StringVarP(&listen, "listen", "a", "", "address to listen on (default: every address of the devices)")
	f.Uint16VarP(&port, "port", "p", Port, "port; 0 takes a free one")
	f.StringVar(&t.Subsystem, "nqn", DefaultSubsystem, "the target's name")
	t.Seats.AddFlag(cmd)
	return cmd
}

// openDisk opens a file, or makes a disk of a size.
func openDisk(arg string) (*FileDisk, error) {
	if size, err := cli.ParseBytes(arg); err == nil {
		return NewDisk(size)
	}
	d, err := OpenDisk(arg)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w; 'truncate -s 64M %s' makes a disk of 64 MiB", err, arg)
	}
	return d, err
}

func hostCommand() *cobra.Command {
	var device cli.DeviceFlags
	var port uint16
	var config HostConfig
	var nsid uint32
	var size int
	var bytes int64
	var seed uint64
	var turn time.Duration
	var write, verify bool
	cmd := &cobra.Command{
		Use:   "host HOST[:PORT]",
		Short: "Read, write or verify a target's disk",
		Long: `Connects to a target, and reads blocks at random places of namespace 1 for a
time; with --write it writes them. With --verify it writes pseudo-random bytes
in pieces of several sizes, flushes, reads them back in others, and compares.
Exit status 1 when a command failed or a byte is wrong.`,
		Example: "  rdmashim sample nvme host 192.0.2.7 --queues 4 --time 10s\n  rdmashim sample nvme host 192.0.2.7 --verify --bytes 64M",
		Args:    cli.Host(0),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case verify && write:
				return cli.Usagef("--verify writes and reads by itself: without --write")
			case config.Queues < 1 || config.Queues > 64:
				return cli.Usagef("--queues %d: a host has 1 … 64", config.Queues)
			case config.Depth < 2 || config.Depth > 1024:
				return cli.Usagef("--depth %d: a queue has 2 … 1024 commands", config.Depth)
			case size < 512 || size > dataSize || size%512 != 0:
				return cli.Usagef("--size %d: want 512 … %d bytes in blocks", size, dataSize)
			}
			ctx := cmd.Context()
			addr := peer.HostPort(args[0], port)
			d, err := peer.OpenToDial(ctx, device.Named(), addr, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer d.Close()
			h, err := Connect(ctx, d, addr, config)
			if errors.Is(err, uapi.ErrRefused) {
				return fmt.Errorf("%w (is 'rdmashim sample nvme serve' running there?)", err)
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, h.Close()) }()
			ns, ok := h.Namespaces[nsid]
			if !ok {
				return cli.Usagef("--namespace %d: the target has %d", nsid, len(h.Namespaces))
			}
			if bytes < 0 || bytes%(1<<ns.Shift) != 0 {
				return cli.Usagef("--bytes %d: want whole blocks of %d", bytes, 1<<ns.Shift)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "controller %d, %s: namespace %d has %s in blocks of %d\n", h.Controller.ID,
				cli.Printable(h.Controller.Model), nsid, cli.Size(ns.Size()), 1<<ns.Shift)
			p := cli.NewProgress(cmd.ErrOrStderr(), "nvme", -1)
			load := ns.Load()
			load.Seed, load.Done = seed, p.Add
			do := func(s *diskload.Step, err error) error {
				if p.Done(); s != nil {
					fmt.Fprintln(cmd.OutOrStdout(), s)
				}
				return peer.Cause(ctx, err)
			}
			if !verify {
				return do(load.Random(ctx, size, write, turn))
			}
			load.Bytes = min(load.Bytes, cmp.Or(bytes, load.Bytes))
			if err := do(load.Write(ctx)); err != nil {
				return err
			}
			if err := ns.Flush(ctx); err != nil {
				return peer.Cause(ctx, err)
			}
			return do(load.Check(ctx))
		},
	}
	device.AddDevice(cmd)
	f := cmd.Flags()
	f.Uint16VarP(&port, "port", "p", Port, "the target's port")
	f.StringVar(&config.Subsystem, "nqn", DefaultSubsystem, "the target's name")
	f.IntVar(&config.Queues, "queues", 1, "queues to read and write by")
	f.IntVar(&config.Depth, "depth", 32, "commands outstanding on each")
	f.Uint32Var(&nsid, "namespace", 1, "the disk's number")
	cli.BytesVar(f, &size, "size", "S", 4096, "bytes of a command (--verify: its own)")
	f.DurationVar(&turn, "time", 5*time.Second, "how long")
	f.BoolVar(&write, "write", false, "write at random places, over what is there")
	f.BoolVar(&verify, "verify", false, "write the first --bytes, over what is there, read them back and compare")
	cli.BytesVar(f, &bytes, "bytes", "", 0, "how much --verify writes (default: the whole disk)")
	f.Uint64Var(&seed, "seed", 1, "of --verify's bytes")
	return cmd
}
