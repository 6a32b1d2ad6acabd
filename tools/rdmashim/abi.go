package main

import (
	"fmt"
	"io"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rdmashim/rdmashim/kshim/abi"
	"github.com/rdmashim/rdmashim/kshim/emu"
)

func newABI() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "abi [NAME]",
		Short: "List the kernel's RDMA interface and what the mini kernel answers of it",
		Long: `abi lists every command of write() and every method of RDMA_VERBS_IOCTL that
Linux 6.1 has, with sizes or attributes, and whether the mini kernel answers it.
It is the table that the mini kernel itself goes by.

A command goes by write(), or by the method DEVICE.INVOKE_WRITE. With a NAME (in
any case, of a method also without its object) abi shows one entry in full.

JSON keys: name, form (write, write-extended, ioctl), command or object and method
(numbers), request and response (bytes), driver (has a part of the driver's),
attributes (name, id, type, object, min, max, mandatory, longer), support, reason,
errno.`,
		Args: maxArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			table := emu.Table()
			if len(args) > 0 {
				if table = findEntries(table, args[0]); len(table) == 0 {
					return fmt.Errorf("the kernel's interface has no %q; 'rdmashim abi' lists what it has", args[0])
				}
			}
			out := cmd.OutOrStdout()
			switch {
			case asJSON:
				return printABIJSON(out, table)
			case len(args) > 0:
				return printEntries(out, table)
			}
			return printTable(out, table)
		},
	}
	cmd.Flags().BoolVarP(&asJSON, "json", "j", false, "print JSON")
	return cmd
}

// findEntries gives the entries of a name: a method may lack its object.
func findEntries(table []emu.Entry, name string) []emu.Entry {
	var found []emu.Entry
	for _, e := range table {
		_, short, _ := strings.Cut(e.Name, ".")
		if strings.EqualFold(e.Name, name) || strings.EqualFold(short, name) {
			found = append(found, e)
		}
	}
	return found
}

// titles of the parts of the table.
var titles = map[emu.Form]string{
	emu.FormWrite:    "Commands of write() and INVOKE_WRITE",
	emu.FormExtended: "Extended commands of write() and INVOKE_WRITE",
	emu.FormIoctl:    "Methods of RDMA_VERBS_IOCTL",
}

func printTable(out io.Writer, table []emu.Entry) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	var form emu.Form
	supported := 0
	for i := range table {
		e := &table[i]
		if e.Form != form {
			if form != "" {
				fmt.Fprintln(w)
			}
			form = e.Form
			fmt.Fprintf(w, "%s\n", titles[form])
			if form == emu.FormIoctl {
				fmt.Fprint(w, "NUMBER\tNAME\tATTRIBUTES\tSUPPORT\n")
			} else {
				fmt.Fprint(w, "NUMBER\tNAME\tREQUEST\tRESPONSE\tSUPPORT\n")
			}
		}
		if e.Support == emu.Supported {
			supported++
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", numberOf(e), e.Name, shapeOf(e), supportOf(e))
	}
	fmt.Fprintf(w, "\n%d of %d are supported\n", supported, len(table))
	return w.Flush()
}

func numberOf(e *emu.Entry) string {
	if e.Form == emu.FormIoctl {
		return fmt.Sprintf("%d.%d", e.Object, e.Method)
	}
	return fmt.Sprint(uint32(e.Command &^ abi.CmdFlagExtended))
}

// shapeOf is what an entry takes and gives, in its column or columns.
func shapeOf(e *emu.Entry) string {
	if e.Form == emu.FormIoctl {
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
	return sizeOf(e.Request, e.Driver) + "\t" + sizeOf(e.Response, e.Driver)
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

func supportOf(e *emu.Entry) string {
	if e.Support == emu.Supported {
		return "yes"
	}
	return fmt.Sprintf("%s: %s", errnoName(e.Errno), e.Reason)
}

func printEntries(out io.Writer, list []emu.Entry) error {
	for i := range list {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printEntry(out, &list[i]); err != nil {
			return err
		}
	}
	return nil
}

func printEntry(out io.Writer, e *emu.Entry) error {
	fmt.Fprintln(out, e.Name)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if e.Form == emu.FormIoctl {
		fmt.Fprintf(w, "  form\tRDMA_VERBS_IOCTL, object %d (%v), method %d\n", e.Object, e.Object, e.Method)
	} else {
		fmt.Fprintf(w, "  form\twrite() or INVOKE_WRITE, command %#x\n", uint32(e.Command))
		fmt.Fprintf(w, "  request\t%s\n", bytesOf(e, e.Request))
		fmt.Fprintf(w, "  response\t%s\n", bytesOf(e, e.Response))
	}
	if e.Support == emu.Supported {
		fmt.Fprint(w, "  support\tyes\n")
	} else {
		fmt.Fprintf(w, "  support\tno, %s: %s\n", errnoName(e.Errno), e.Reason)
	}
	if err := w.Flush(); err != nil || len(e.Attrs) == 0 {
		return err
	}
	fmt.Fprint(w, "  ID\tATTRIBUTE\tTYPE\tBYTES\tMANDATORY\n")
	for _, a := range e.Attrs {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", attrID(a.ID), a.Name, attrType(&a), attrBytes(&a), yesNo(a.Mandatory))
	}
	return w.Flush()
}

func bytesOf(e *emu.Entry, n int) string {
	switch {
	case n == 0 && e.Support == emu.Supported:
		return "none"
	case n == 0:
		return "not in the headers"
	case e.Form == emu.FormExtended:
		return fmt.Sprintf("%d bytes at most, then the driver's part", n)
	case e.Driver:
		return fmt.Sprintf("%d bytes, then the driver's part", n)
	}
	return fmt.Sprintf("%d bytes", n)
}

func attrID(id abi.AttrID) string {
	if id >= abi.AttrUHWIn {
		return fmt.Sprintf("%#x", uint16(id))
	}
	return fmt.Sprint(uint16(id))
}

func attrType(a *emu.Attribute) string {
	if a.Max == 0 { // a handle or descriptor
		return fmt.Sprintf("%v of %v", a.Type, a.Object)
	}
	return a.Type.String()
}

func attrBytes(a *emu.Attribute) string {
	const any = 65535
	switch {
	case a.Max == 0:
		return "-"
	case a.Min == 0 && a.Max == any:
		return "any"
	case a.Max == any:
		return fmt.Sprintf("%d or more", a.Min)
	case a.Longer:
		return fmt.Sprintf("%d, or more if zero", a.Max)
	case a.Min != a.Max:
		return fmt.Sprintf("%d to %d", a.Min, a.Max)
	}
	return fmt.Sprint(a.Max)
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func errnoName(e syscall.Errno) string {
	switch e {
	case syscall.EOPNOTSUPP:
		return "EOPNOTSUPP"
	case syscall.EPROTONOSUPPORT:
		return "EPROTONOSUPPORT"
	}
	return e.Error()
}
