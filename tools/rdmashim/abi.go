package main

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/tools/internal/cli"
)

func newABI() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "abi [NAME]",
		Short: "List the kernel's RDMA calls, and which the mini kernel answers",
		Long: `abi lists every command of write(), every method of RDMA_VERBS_IOCTL and every
command of rdma_cm that Linux 6.1 has, with sizes or attributes, and whether the
mini kernel answers it. It is the table that the mini kernel itself goes by.

A command goes by write(), or by the method DEVICE.INVOKE_WRITE. With a NAME (in
any case, of a method also without its object) abi lists that one only; its
attributes are in the JSON.`,
		Example: `  rdmashim abi
  rdmashim abi CREATE_QP
  rdmashim abi -j QP_CREATE`,
		Args: cli.MaxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			table := abi.Schema()
			if len(args) > 0 {
				if table = findEntries(table, args[0]); len(table) == 0 {
					return fmt.Errorf("the kernel's interface has no %q; 'rdmashim abi' lists what it has", args[0])
				}
			}
			if asJSON {
				return printABIJSON(cmd.OutOrStdout(), table)
			}
			return printTable(cmd.OutOrStdout(), table)
		},
	}
	cli.JSONFlag(cmd, &asJSON)
	return cmd
}

// findEntries gives the entries of a name: a method may lack its object.
func findEntries(table []*abi.Entry, name string) []*abi.Entry {
	var found []*abi.Entry
	for _, e := range table {
		if strings.EqualFold(e.Name, name) || strings.EqualFold(e.ShortName(), name) {
			found = append(found, e)
		}
	}
	return found
}

// titles of the parts of the table.
var titles = map[abi.Form]string{
	abi.FormWrite:    "Commands of write() and INVOKE_WRITE",
	abi.FormExtended: "Extended commands of write() and INVOKE_WRITE",
	abi.FormIoctl:    "Methods of RDMA_VERBS_IOCTL",
	abi.FormCM:       "Commands of /dev/infiniband/rdma_cm",
}

func printTable(out io.Writer, table []*abi.Entry) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var form abi.Form
	supported := 0
	for _, e := range table {
		if e.Form != form {
			if form != "" {
				fmt.Fprintln(w)
			}
			form = e.Form
			fmt.Fprintf(w, "%s\n", titles[form])
			if form == abi.FormIoctl {
				fmt.Fprint(w, "NUMBER\tNAME\tATTRIBUTES\tSUPPORT\n")
			} else {
				fmt.Fprint(w, "NUMBER\tNAME\tREQUEST\tRESPONSE\tSUPPORT\n")
			}
		}
		if e.Supported() {
			supported++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", numberOf(e), e.Name, shapeOf(e), supportOf(e))
	}
	fmt.Fprintf(w, "\n%d of %d are supported\n", supported, len(table))
	return w.Flush()
}

func numberOf(e *abi.Entry) string {
	switch e.Form {
	case abi.FormIoctl:
		return fmt.Sprintf("%d.%d", e.Object, e.Method)
	case abi.FormCM:
		return fmt.Sprint(uint32(e.CM))
	}
	return fmt.Sprint(uint32(e.Command &^ abi.CmdFlagExtended))
}

// shapeOf returns the requests and answers of an entry, in its column or
// columns.
func shapeOf(e *abi.Entry) string {
	if e.Form == abi.FormIoctl {
		if len(e.Attrs) == 0 {
			return "-"
		}
		mandatory := 0
		for _, a := range e.Attrs {
			if a.Mandatory {
				mandatory++
			}
		}
		return fmt.Sprintf("%d, %d mandatory", len(e.Attrs), mandatory)
	}
	return sizeOf(e.Request.Size, e.Driver) + "\t" + sizeOf(e.Response.Size, e.Driver)
}

func sizeOf(n int, driver bool) string {
	switch {
	case n == 0:
		return "-"
	case driver:
		return fmt.Sprintf("%d + driver", n)
	}
	return fmt.Sprint(n)
}

func supportOf(e *abi.Entry) string {
	if e.Supported() {
		return "yes"
	}
	return fmt.Sprintf("%s: %s", errnoName(e.Errno), e.Lacks)
}

func errnoName(e syscall.Errno) string {
	switch e {
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case syscall.EPROTONOSUPPORT:
		return "EPROTONOSUPPORT"
	case syscall.ENOSYS:
		return "ENOSYS"
	}
	return e.Error()
}
