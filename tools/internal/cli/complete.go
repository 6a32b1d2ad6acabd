package cli

import (
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/uapi"
)

// CompleteFirst completes a command's first argument by f, and offers nothing
// for the others.
func CompleteFirst(f cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return f(cmd, args, begin)
	}
}

// CompleteDevices completes names of devices that can be opened.
func CompleteDevices(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	names := []string{"soft", "sim"}
	list, _ := uapi.Devices() // without opening one
	for _, d := range list {
		names = append(names, d.Device)
	}
	slices.Sort(names)
	return slices.Compact(names), cobra.ShellCompDirectiveNoFileComp
}

// CompleteKernelDevices completes names of devices of the kernel.
func CompleteKernelDevices(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	list, _ := uapi.Devices()
	for _, d := range list {
		if d.Kind == "host" {
			names = append(names, strings.TrimPrefix(d.Device, "host:"))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteInterfaces completes names of network devices.
func CompleteInterfaces(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	list, _ := net.Interfaces()
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
