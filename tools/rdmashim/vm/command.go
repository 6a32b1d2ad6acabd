package vm

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	guests "github.com/rdmashim/rdmashim/vm"
	"github.com/rdmashim/rdmashim/vm/guest"
)

// Statuses of 'vm run' that are not the command's, as timeout(1) and shells
// have them.
const (
	statusTimeout  = 124
	statusFailed   = 125 // the guest could not be run, or its kernel complained
	statusNotFound = 127
)

// Command returns the command vm.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "vm",
		Example: `  rdmashim vm run -- rdma link show`,
		Short:   "Run commands and tests in a guest whose kernel has rdma_rxe",
		Long: `rdmashim vm boots the distribution's kernel in QEMU, without root, brings rxe0
up and runs commands in it.`,
		Args: cli.NoArgs,
		RunE: cli.Help,
	}
	cmd.AddCommand(newRun(), newBuild(), newTest(), newExec(), newGuest(), newDemo(), newDemoNode())
	return cmd
}

// newGuest makes the command that u-root's init starts in the guest.
func newGuest() *cobra.Command {
	return &cobra.Command{
		Use:    "guest",
		Short:  "The helper inside a guest",
		Hidden: true,
		Args:   cli.NoArgs,
		RunE:   func(cmd *cobra.Command, _ []string) error { return guest.Main(cmd.Context()) },
	}
}

// bootFlags are the flags that all commands share which boot a guest.
type bootFlags struct {
	config guests.Config
	add    []string
	quiet  bool
}

func (f *bootFlags) register(flags *pflag.FlagSet) {
	c := &f.config
	cli.MiBVar(flags, &c.Memory, "memory", 0, "memory of each guest in MiB, or like 2G (default 256 and what --add needs)")
	flags.IntVar(&c.CPUs, "cpus", 2, "processors of each guest")
	flags.DurationVar(&c.Timeout, "timeout", 10*time.Minute, "end the guests after this time, counted from their boot, but for what a busy host withholds")
	flags.DurationVar(&c.BootTimeout, "boot-timeout", 3*time.Minute, "end the guests when they have not booted by then")
	flags.StringArrayVar(&f.add, "add", nil, "bring in a file or directory, `HOSTPATH[:GUESTPATH]`, with the shared libraries of programs (may be repeated)")
	flags.StringSliceVar(&c.Load, "module", nil, "load the kernel module `NAME` before the command (may be repeated)")
	flags.StringArrayVar(&c.Env, "env", nil, "`NAME=VALUE` for the environment in the guest (may be repeated)")
	flags.StringVar(&c.Kernel, "kernel", "", "boot this kernel `FILE` instead of the distribution's package; needs --modules")
	flags.StringVar(&c.Modules, "modules", "", "modules of that kernel: `DIR` as /lib/modules/RELEASE")
	flags.StringVar(&c.Release, "release", "", "boot the newest package of this `VERSION` of Linux, as 6.12, instead of the newest of all")
	flags.StringVar(&c.Image, "image", "", "boot this image `FILE`, written by 'rdmashim vm build' for the same kernel")
	flags.StringVar(&c.QEMU, "qemu", "", "QEMU `PROGRAM` (default qemu-system-x86_64)")
	flags.StringVar(&c.Accel, "accel", "", "tcg or kvm (default: kvm where a guest was seen to boot with it)")
	flags.StringVar(&c.LogFile, "log", "", "keep the guest's log in `FILE` (two nodes: FILE.node0, FILE.node1)")
	flags.BoolVar(&c.NoLink, "no-link", false, "make no rxe0")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "say nothing about booting")
}

// get returns the configuration that the flags describe.
func (f *bootFlags) get(stderr io.Writer) (guests.Config, error) {
	for _, a := range f.add {
		add, err := guests.ParseAdd(a)
		if err != nil {
			return f.config, cli.Usagef("--add: %v", err)
		}
		f.config.Add = append(f.config.Add, add)
	}
	if !f.quiet {
		f.config.Log = func(format string, args ...any) { fmt.Fprintf(stderr, "rdmashim: "+format+"\n", args...) }
	}
	return f.config, nil
}

// status turns how a run ended into how the tool ends.
func status(err error) error {
	if err == nil {
		return nil
	}
	var (
		exit    *guests.ExitError
		command *guests.CommandError
		timeout *guests.TimeoutError
		kernel  *guests.KernelError
	)
	switch {
	case errors.As(err, &timeout):
		return &cli.ExitStatus{Code: statusTimeout, Err: err}
	case errors.As(err, &kernel):
		return &cli.ExitStatus{Code: statusFailed, Err: err}
	case errors.As(err, &command) && command.NotFound:
		return &cli.ExitStatus{Code: statusNotFound, Err: err}
	case errors.As(err, &exit):
		if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 1 {
			return &cli.ExitStatus{Code: exit.Status(), Err: err}
		}
		return &cli.ExitStatus{Code: exit.Status()} // the command has said why
	}
	return &cli.ExitStatus{Code: statusFailed, Err: err}
}

func newRun() *cobra.Command {
	var f bootFlags
	cmd := &cobra.Command{
		Use: "run [flags] -- COMMAND [ARGUMENT...]",
		Example: `  rdmashim vm run -- rdma link show
  rdmashim vm run -q -- uname -r`,
		Short: "Boot, run a command, forward its output and exit status",
		Long: `Boots a guest (two with --nodes 2, on a private link), brings rxe0 up, runs the
command, which is looked up on the guest's PATH, and powers off. Standard output
is the command's and nothing else. The command finds RDMASHIM_NODE (0 or 1),
RDMASHIM_ADDR (the address under rxe0), RDMASHIM_PEER (the other node's) and
RDMASHIM_OUT (/out, which --out brings back) in its environment.

exit status: the command's (128+N when signal N ended it); 124 the time was up;
125 the guest could not be run or its kernel complained; 127 no such command.
With two nodes 0 only if both are 0.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usagef("vm run needs a command: rdmashim vm run -- COMMAND")
			}
			c, err := f.get(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			c.Command = guests.Command{Args: args, Stdin: cmd.InOrStdin(), Stdout: cmd.OutOrStdout(), Stderr: cmd.ErrOrStderr()}
			result, err := guests.Run(cmd.Context(), c)
			printResult(&f, cmd.ErrOrStderr(), result)
			return status(err)
		},
	}
	cmd.Flags().SetInterspersed(false)
	f.register(cmd.Flags())
	cmd.Flags().IntVar(&f.config.Nodes, "nodes", 1, "1, or 2 guests that are linked to each other")
	cmd.Flags().StringVar(&f.config.Out, "out", "", "bring files that the command leaves in /out back into `DIR`")
	return cmd
}

// printResult tells the noteworthy facts of a finished run.
func printResult(f *bootFlags, stderr io.Writer, r *guests.Result) {
	if r == nil || f.quiet {
		return
	}
	for i, n := range r.Nodes {
		for _, line := range n.Stalls {
			fmt.Fprintf(stderr, "rdmashim: node %d: emulation lost time: %s\n", i, line)
		}
	}
	if r.Total > 0 {
		fmt.Fprintf(stderr, "rdmashim: vm: up in %.1f s, off after %.1f s\n", r.Boot.Seconds(), r.Total.Seconds())
	}
}

func newBuild() *cobra.Command {
	var kernel, modules, release, file string
	var load []string
	cmd := &cobra.Command{
		Use:     "build -o FILE",
		Example: `  rdmashim vm build -o initramfs.cpio`,
		Short:   "Write the guest's image and print its SHA-256",
		Args:    cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usagef("vm build needs -o FILE")
			}
			logf := func(format string, args ...any) {
				fmt.Fprintf(cmd.ErrOrStderr(), "rdmashim: "+format+"\n", args...)
			}
			k, err := guests.FindKernel(cmd.Context(), kernel, modules, release, logf, load...)
			if err != nil {
				return err
			}
			image, err := guests.BuildImage(cmd.Context(), guests.ImageConfig{Kernel: k, Log: logf}, file)
			if err != nil {
				return err
			}
			logf("image: %.1f MB for kernel %s", float64(image.Size)/1e6, k.Release)
			fmt.Fprintf(cmd.OutOrStdout(), "%s  %s\n", image.SHA256, file)
			return nil
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "the `FILE` to write")
	cmd.Flags().StringVar(&kernel, "kernel", "", "for this kernel `FILE` instead of the distribution's package; needs --modules")
	cmd.Flags().StringVar(&modules, "modules", "", "modules of that kernel: `DIR` as /lib/modules/RELEASE")
	cmd.Flags().StringVar(&release, "release", "", "for the newest package of this `VERSION` of Linux, as 6.12")
	cmd.Flags().StringSliceVar(&load, "module", nil, "with the kernel module `NAME` (may be repeated)")
	return cmd
}
