package kernel

import (
	"fmt"
	"path"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim"
	"github.com/rdmashim/rdmashim/kshim/host"
	"github.com/rdmashim/rdmashim/kshim/verbs"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

const (
	// inContainer is where containers have the directory of a kernel's socket.
	inContainer = "/run/rdmashim-kernel"
	// shmInContainer is where they have the directory in which devices meet.
	shmInContainer = "/run/rdmashim-shm"
)

// These are what a container engine reads, a specification of the Container
// Device Interface of version 0.5.0, the newest of podman 4.3 (SPEC.md of
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
		Env    []string   `json:"env,omitempty"`
		Nodes  []cdiNode  `json:"deviceNodes,omitempty"`
		Mounts []cdiMount `json:"mounts,omitempty"`
	}
	cdiNode struct {
		Path string `json:"path"`
	}
	cdiMount struct {
		HostPath      string   `json:"hostPath"`
		ContainerPath string   `json:"containerPath"`
		Options       []string `json:"options"`
	}
)

// CDICommand is rdmashim cdi.
func CDICommand() *cobra.Command {
	var dir, name string
	cmd := &cobra.Command{
		Use:   "cdi {SOCKET | --shm DIR | --device NAME}",
		Short: "Print the CDI entry that gives containers a device",
		Long: `Print an entry of the Container Device Interface. With the socket of rdmashim
kernel serve it gives the kernel's devices: a container that asks for the device
has the socket's directory, which should have nothing else in it, at
` + inContainer + `, and the variable RDMASHIM_KERNEL, by which its
rdmashim run finds the socket. With --shm it gives the directory in which soft
devices of several containers meet, and RDMASHIM_SHM_DIR; with --device the
device files of a kernel's device, for containers of the host's network.`,
		Example: `  rdmashim cdi /run/rdma/kernel.sock > /etc/cdi/rdmashim.json
  podman run --device rdmashim.io/kernel=rxe0 IMAGE rdmashim run -- ibv_devinfo
  rdmashim cdi --shm /run/rdma-shm > /etc/cdi/rdmashim-shm.json
  podman run --device rdmashim.io/shm=dir IMAGE …`,
		Args: func(_ *cobra.Command, args []string) error {
			n := len(args)
			for _, flag := range []string{dir, name} {
				if flag != "" {
					n++
				}
			}
			if n != 1 {
				return cli.Usagef("cdi needs the SOCKET of 'rdmashim kernel serve', or --shm, or --device")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			var spec cdiSpec
			switch {
			case name != "":
				var k kshim.Kernel
				if k, err = host.New(host.Options{}); err == nil {
					spec, err = cdiOfDevice(k, name)
				}
			case dir != "":
				if dir, err = filepath.Abs(dir); err == nil {
					spec = cdiEntry("shm", "dir", mounted(dir, shmInContainer, "RDMASHIM_SHM_DIR", ""))
				}
			default:
				var socket string
				if socket, err = filepath.Abs(args[0]); err == nil {
					spec = cdiEntry("kernel", "rxe0", mounted(filepath.Dir(socket), inContainer, "RDMASHIM_KERNEL", filepath.Base(socket)))
				}
			}
			if err != nil {
				return err
			}
			return cli.PrintJSON(cmd.OutOrStdout(), spec)
		},
	}
	cmd.Flags().StringVar(&dir, "shm", "", "directory in which soft devices of several containers meet")
	cmd.Flags().StringVar(&name, "device", "", "name of a kernel's device, such as mlx5_0")
	_ = cmd.RegisterFlagCompletionFunc("device", cli.CompleteKernelDevices)
	return cmd
}

func cdiEntry(class, name string, edits cdiEdits) cdiSpec {
	return cdiSpec{"0.5.0", "rdmashim.io/" + class, []cdiDevice{{name, edits}}}
}

// mounted are the edits by which a container has a host's directory, and a
// variable that names it, or a file in it.
func mounted(dir, at, variable, file string) cdiEdits {
	return cdiEdits{
		Env:    []string{variable + "=" + path.Join(at, file)},
		Mounts: []cdiMount{{dir, at, []string{"bind", "rw", "nosuid", "nodev"}}},
	}
}

// cdiOfDevice is the entry of a kernel's device: its file, and that of the
// connection manager if there is one.
func cdiOfDevice(k kshim.Kernel, name string) (cdiSpec, error) {
	list, err := verbs.Devices(k)
	if err != nil {
		return cdiSpec{}, err
	}
	for _, d := range list {
		if d.Name != name {
			continue
		}
		edits := cdiEdits{Nodes: []cdiNode{{d.Node}}}
		if _, err := k.ReadDir("/sys/class/misc/rdma_cm"); err == nil {
			edits.Nodes = append(edits.Nodes, cdiNode{"/dev/infiniband/rdma_cm"})
		}
		return cdiEntry("device", name, edits), nil
	}
	return cdiSpec{}, fmt.Errorf("the kernel has no device %q; rdmashim devices lists them: %w", name, syscall.ENODEV)
}
