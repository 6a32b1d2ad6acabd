package run

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim/preload"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/stats"
)

// Sweep waits until the programs of a run have ended, and removes what those
// that were killed have left: its standard input is preload.SweepWhenEnded's.
func Sweep() error {
	err := preload.SweepWhenEnded()
	stats.Tidy()
	return err
}

// Command is rdmashim run.
func Command() *cobra.Command {
	var devices []string
	var faults cli.DeviceFlags
	var build, way, server string
	var sweep bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a program of libibverbs on a soft device, without a card",
		Long: `Run a program that uses libibverbs, librdmacm or the kernel's RDMA files, as it
is, on soft devices: perftest, rping, MPI, your own. No root, no kernel module.
Exit status and signals are the program's.

There are two ways. The library puts the mini kernel into the program's process:
the fast way, for C programs of glibc. Its first run builds two small libraries,
which takes a C compiler, the go command and half a minute. The supervisor
answers the program's system calls from another process, and reaches every
program: static, musl, Go, Python, children of a fork. Without --way the command
takes the library where it can, and says when it does not.

The devices are rxe0, rxe1 and so on: by the library each process has its own,
by the supervisor all processes of the command share them, and with --kernel all
programs of a server, rdmashim kernel serve. A device without an address takes
the first free of 127.0.0.1 to 127.0.0.16; peers that are to find it give it
one: soft:127.0.0.5.`,
		Example: `  rdmashim run -- ibv_devinfo
  rdmashim run -d soft:127.0.0.5 -- ibv_rc_pingpong -g 0
  rdmashim run -d soft:127.0.0.6 --loss 1% -- ibv_rc_pingpong -g 0 127.0.0.5
  rdmashim run --kernel /tmp/k.sock -- rping -s -a 127.0.0.1`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sweep {
				return Sweep()
			}
			if build != "" {
				return preload.BuildLibraries(build)
			}
			if len(args) == 0 {
				return cli.Usagef("which program? rdmashim run -- ibv_devinfo")
			}
			devices, err := faults.ForPrograms(devices, preload.CheckDevice)
			if err != nil {
				return err
			}
			if server == "" && way != byLibrary && !cmd.Flags().Changed("device") {
				server = os.Getenv("RDMASHIM_KERNEL")
			}
			if of := faults.Given(cmd, "device"); server != "" && of != "" {
				return cli.Usagef("the devices of a shared kernel and their faults are the server's, %s: leave out --%s", server, of)
			}
			w, err := choose(way, server, args[0], cmd.ErrOrStderr())
			if errors.Is(err, exec.ErrNotFound) {
				return cmp.Or(cli.NotInstalled(args[0]), err)
			}
			if err != nil {
				return err
			}
			if w == bySupervisor {
				return supervised(args, devices, server)
			}
			program, err := preload.Look(args[0])
			if err != nil {
				return err
			}
			// Signals do what they do to the program, also before it starts.
			signal.Reset(os.Interrupt, syscall.SIGTERM)
			progress := &progress{w: cmd.ErrOrStderr()}
			libraries, err := preload.Find(progress)
			progress.done()
			if err != nil {
				return err
			}
			return preload.Start(program, libraries, devices, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&devices, "device", "d", nil, "a soft device, soft or soft:ADDRESS with options; may be repeated")
	faults.AddFaults(cmd)
	flags.StringVar(&way, "way", "", "library or supervisor: how the program is reached (default: the library where it can)")
	flags.StringVar(&server, "kernel", "", "the socket of a mini kernel that programs share (rdmashim kernel serve; default: $RDMASHIM_KERNEL)")
	flags.BoolVar(&sweep, preload.Sweep, false, "")
	_ = flags.MarkHidden(preload.Sweep)
	flags.StringVar(&build, preload.Build, "", "")
	_ = flags.MarkHidden(preload.Build)
	flags.SetInterspersed(false)
	return cmd
}

// progress prints the first text of what building the libraries says, and on a
// terminal counts the lines behind it, which are packages.
type progress struct {
	w   io.Writer
	bar *cli.Progress
}

func (p *progress) Write(b []byte) (int, error) {
	if p.bar == nil {
		defer func() { p.bar = cli.NewProgress(p.w, "packages compiled", -1) }()
		return p.w.Write(b)
	}
	p.bar.Add(bytes.Count(b, []byte("\n")))
	return len(b), nil
}

func (p *progress) done() {
	if p.bar != nil {
		p.bar.Done()
	}
}
