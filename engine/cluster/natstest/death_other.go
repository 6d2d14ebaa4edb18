//go:build !linux

package natstest

import "syscall"

// dieWithUs lets a server outlive the process that started it only where that is killed.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
