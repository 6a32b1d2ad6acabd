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
)

// Command is rdmashim run.
func Command() *cobra.Command {
	var devices []string
	var faults cli.DeviceFlags
	var build string
	var sweep bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- PROGRAM [ARGUMENT...]",
		Short: "Run a C program of libibverbs on a soft device, without a card",
		Long: `Run a C program that uses libibverbs or librdmacm, as it is, on soft devices
that live in its process: perftest, rping, your own. No root, no kernel module.

The command becomes the program: exit status and signals are the program's. Each
process of it that uses RDMA has devices of its own, rxe0, rxe1 and so on. A
device without an address takes the first free of 127.0.0.1 to 127.0.0.16; peers
that are to find it give it one: soft:127.0.0.5.

The first run builds two small libraries, which takes a C compiler, the go
command and half a minute. Programs that are static, written in Go, linked with
musl or privileged cannot be reached; the command says so.`,
		Example: `  rdmashim run -- ibv_devinfo
  rdmashim run -d soft:127.0.0.5 -- ibv_rc_pingpong -g 0
  rdmashim run -d soft:127.0.0.6 --loss 1% -- ibv_rc_pingpong -g 0 127.0.0.5`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if sweep {
				return preload.SweepWhenEnded()
			}
			if build != "" {
				return preload.BuildLibraries(build)
			}
			if len(args) == 0 {
				return cli.Usagef("which program? rdmashim run -- ibv_devinfo")
			}
			if len(devices) == 0 {
				devices = []string{"soft"}
			}
			for i, d := range devices {
				if err := preload.CheckDevice(d); err != nil {
					return &cli.UsageError{Err: err}
				}
				devices[i] = cli.WithOptions(d, faults.Options())
			}
			program, err := preload.Look(args[0])
			if errors.Is(err, exec.ErrNotFound) {
				return cmp.Or(cli.NotInstalled(args[0]), err)
			}
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
