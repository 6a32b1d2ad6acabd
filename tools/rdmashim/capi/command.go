package capi

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
	"github.com/rdmashim/rdmashim/uapi/capi"
)

// Command is rdmashim capi.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "capi",
		Short: "Install the C library: RDMA for C programs by rdma.h",
		Long: `The C library, librdmashim: memory regions and queue pairs as plain numbers, by
one header, user/rdma.h. It is a library to link with; 'rdmashim run' runs
programs of libibverbs as they are.`,
		Example: `  rdmashim capi install --prefix ~/.local`,
		Args:    cli.NoArgs,
		RunE:    cli.Help,
	}
	cmd.AddCommand(newInstall())
	return cmd
}

func newInstall() *cobra.Command {
	var config capi.Config
	cmd := &cobra.Command{
		Use:   "install",
		Short: "Build librdmashim and install it with its headers",
		Long: `Build librdmashim and install it: the shared library, the archive, the headers
and a file for pkg-config. It prints the files that it installs.

That takes a C compiler, the go command and half a minute. Programs that use the
installed library need neither.`,
		Example: `  rdmashim capi install --prefix ~/.local
  rdmashim capi install --destdir ./package --prefix /usr`,
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if config.DestDir == "" {
				if config.Prefix, err = filepath.Abs(config.Prefix); err != nil {
					return err
				}
			}
			files, err := capi.Install(config)
			for _, f := range files {
				fmt.Fprintln(cmd.OutOrStdout(), f)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&config.Prefix, "prefix", "/usr/local", "the directory that lib and include are in")
	cmd.Flags().StringVar(&config.DestDir, "destdir", "", "a directory to put before the prefix, for packages")
	return cmd
}
