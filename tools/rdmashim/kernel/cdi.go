package kernel

import (
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

// inContainer is where containers have the directory of a kernel's socket.
const inContainer = "/run/rdmashim-kernel"

// These are what a container engine reads, a specification of the Container
// Device Interface of version 0.6.0 (SPEC.md of
// github.com/cncf-tags/container-device-interface).
type (
	cdiSpec struct {
		Version string      `json:"cdiVersion"`
		Kind    string      `json:"kind"`
		Devices []cdiDevice `json:"devices"`
	}
	cdiDevice struct {
		Name  string   `json:"name"`
		Edits cdiEdits `json:"containerEdits"`
	}
	cdiEdits struct {
		Env    []string   `json:"env"`
		Mounts []cdiMount `json:"mounts"`
	}
	cdiMount struct {
		HostPath      string   `json:"hostPath"`
		ContainerPath string   `json:"containerPath"`
		Options       []string `json:"options"`
	}
)

// CDICommand is rdmashim cdi.
func CDICommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cdi SOCKET",
		Short: "Print the CDI entry that gives containers a kernel's devices",
		Long: `Print an entry of the Container Device Interface for the socket of rdmashim
kernel serve. A container that asks for the device has the socket's directory,
which should have nothing else in it, at ` + inContainer + `, and the
variable RDMASHIM_KERNEL, by which its rdmashim run finds the socket.`,
		Example: `  rdmashim cdi /run/rdma/kernel.sock > /etc/cdi/rdmashim.json
  podman run --device rdmashim.io/kernel=rxe0 IMAGE rdmashim run -- ibv_devinfo`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return cli.Usagef("cdi needs the SOCKET of 'rdmashim kernel serve'")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			socket, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			return cli.PrintJSON(cmd.OutOrStdout(), cdiSpec{"0.6.0", "rdmashim.io/kernel", []cdiDevice{{"rxe0", cdiEdits{
				Env:    []string{"RDMASHIM_KERNEL=" + path.Join(inContainer, filepath.Base(socket))},
				Mounts: []cdiMount{{filepath.Dir(socket), inContainer, []string{"bind", "rw", "nosuid", "nodev"}}},
			}}}})
		},
	}
}
