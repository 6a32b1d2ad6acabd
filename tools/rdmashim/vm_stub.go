package main

import "github.com/spf13/cobra"

func newVMShell() *cobra.Command { return &cobra.Command{Use: "shell", Hidden: true} }
func newVMTest() *cobra.Command  { return &cobra.Command{Use: "test", Hidden: true} }
func newVMExec() *cobra.Command  { return &cobra.Command{Use: "exec", Hidden: true} }
