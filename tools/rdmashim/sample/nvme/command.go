package nvme

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/tools/internal/peer"
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
	w := &Work{Time: 5 * time.Second}
	verify := false
	cmd := &cobra.Command{
		Use:   "host HOST[:PORT]",
		Short: "Read, write or verify a target's disk",
		Long: `Connects to a target, and reads blocks at random places of namespace 1 for a
time; with --write it writes them. With --verify it writes pseudo-random bytes
in pieces of several sizes, flushes, reads them back in others, and compares.
Exit status 1 when a command failed or a byte is wrong.`,
		Example: "  rdmashim sample nvme host 192.0.2.7 --queues 4 --time 10s\n  rdmashim sample nvme host 192.0.2.7 --verify --bytes 64M",
		Args:    cli.Host(0),
		RunE: func(cmd *cobra.Command, args []string) error {
			if verify && w.Write {
				return cli.Usagef("--verify writes and reads by itself: without --write")
			}
			if err := w.check(&config); err != nil {
				return err
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
			ns, ok := h.Namespaces[w.Namespace]
			if !ok {
				return errors.Join(cli.Usagef("--namespace %d: the target has %d", w.Namespace, len(h.Namespaces)), h.Close())
			}
			fmt.Fprintf(cmd.OutOrStdout(), "controller %d, %s: namespace %d has %s in blocks of %d\n", h.Controller.ID,
				cli.Printable(h.Controller.Model), w.Namespace, cli.Size(int64(ns.Blocks)<<ns.Shift), 1<<ns.Shift)
			p := cli.NewProgress(cmd.ErrOrStderr(), "nvme", -1)
			w.Done = p.Add
			do := w.Run
			if verify {
				do = w.Verify
			}
			steps, err := do(ctx, h)
			p.Done()
			for _, s := range steps {
				fmt.Fprintln(cmd.OutOrStdout(), s)
			}
			return errors.Join(peer.Cause(ctx, err), h.Close())
		},
	}
	device.AddDevice(cmd)
	f := cmd.Flags()
	f.Uint16VarP(&port, "port", "p", Port, "the target's port")
	f.StringVar(&config.Subsystem, "nqn", DefaultSubsystem, "the target's name")
	f.IntVar(&config.Queues, "queues", 1, "queues to read and write by")
	f.IntVar(&config.Depth, "depth", 32, "commands outstanding on each")
	f.Uint32Var(&w.Namespace, "namespace", 1, "the disk's number")
	cli.BytesVar(f, &w.Size, "size", "S", 4096, "bytes of a command (--verify: its own)")
	f.DurationVar(&w.Time, "time", w.Time, "how long")
	f.BoolVar(&w.Write, "write", false, "write at random places, over what is there")
	f.BoolVar(&verify, "verify", false, "write the first --bytes, over what is there, read them back and compare")
	cli.BytesVar(f, &w.Bytes, "bytes", "", 0, "how much --verify writes (default: the whole disk)")
	f.Uint64Var(&w.Seed, "seed", 1, "of --verify's bytes")
	return cmd
}
