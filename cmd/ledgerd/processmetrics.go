package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// withHelp writes what the metrics library writes of the process or the Go runtime. The library, once asked
// to by ExposeMetadata, writes HELP lines without a text, calls counts of the kernel gauges, and calls
// two metrics counters whose names Prometheus keeps for others: this is put right on the way.
func withHelp(w io.Writer, write func(io.Writer)) {
	var library bytes.Buffer
	write(&library)
	for line := range strings.Lines(library.String()) {
		if name, isHelp := strings.CutPrefix(line, "# HELP "); isHelp {
			name = strings.TrimSpace(name)
			line = fmt.Sprintf("# HELP %s %s\n", name, processHelp[name])
		} else if family, isType := strings.CutPrefix(line, "# TYPE "); isType {
			name, _, _ := strings.Cut(family, " ")
			switch {
			case strings.HasSuffix(name, "_total"):
				line = fmt.Sprintf("# TYPE %s counter\n", name)
			case strings.HasSuffix(name, "_count"):
				line = fmt.Sprintf("# TYPE %s untyped\n", name)
			}
		}
		_, _ = io.WriteString(w, line)
	}
}

// processHelp says what each of these metrics means.
var processHelp = map[string]string{
	"go_cgo_calls_count":                     "Calls of C functions.",
	"go_cpu_count":                           "Processors of the machine that the process may use.",
	"go_gc_cpu_seconds_total":                "Processor time that the garbage collector took.",
	"go_gc_duration_seconds":                 "Pauses of the last 256 garbage collections, by quantile.",
	"go_gc_forced_count":                     "Garbage collections that the program asked for, after a burst.",
	"go_gc_mark_assist_cpu_seconds_total":    "Processor time that goroutines had to help the garbage collector.",
	"go_gc_pauses_seconds":                   "Pauses for the garbage collector.",
	"go_gomaxprocs":                          "Threads that may run Go code at the same time.",
	"go_goroutines":                          "Goroutines that exist.",
	"go_info":                                "Always 1; the version of Go is the label.",
	"go_info_ext":                            "Always 1; compiler and platform are the labels.",
	"go_memlimit_bytes":                      "Memory that the garbage collector tries to stay below; 2^63-1 is no limit.",
	"go_memstats_alloc_bytes":                "Bytes of objects in the heap.",
	"go_memstats_alloc_bytes_total":          "Bytes of objects that were ever allocated.",
	"go_memstats_buck_hash_sys_bytes":        "Bytes of tables for profiles.",
	"go_memstats_frees_total":                "Objects that were freed.",
	"go_memstats_gc_cpu_fraction":            "Part of the processor time since the start that the garbage collector took, 0 to 1.",
	"go_memstats_gc_sys_bytes":               "Bytes of the garbage collector's own tables.",
	"go_memstats_heap_alloc_bytes":           "Bytes of objects in the heap.",
	"go_memstats_heap_idle_bytes":            "Bytes of the heap without objects.",
	"go_memstats_heap_inuse_bytes":           "Bytes of the heap with objects.",
	"go_memstats_heap_objects":               "Objects in the heap.",
	"go_memstats_heap_released_bytes":        "Bytes of the heap that were given back to the system.",
	"go_memstats_heap_sys_bytes":             "Bytes of the heap, as the system gave them.",
	"go_memstats_last_gc_time_seconds":       "When the last garbage collection ended, in seconds since 1970.",
	"go_memstats_lookups_total":              "Always 0: today's Go looks no pointers up.",
	"go_memstats_mallocs_total":              "Objects that were ever allocated.",
	"go_memstats_mcache_inuse_bytes":         "Bytes of the allocator's caches in use.",
	"go_memstats_mcache_sys_bytes":           "Bytes of the allocator's caches.",
	"go_memstats_mspan_inuse_bytes":          "Bytes of the allocator's spans in use.",
	"go_memstats_mspan_sys_bytes":            "Bytes of the allocator's spans.",
	"go_memstats_next_gc_bytes":              "Size of the heap at which the next garbage collection begins.",
	"go_memstats_other_sys_bytes":            "Bytes of the runtime that are in no other of these.",
	"go_memstats_stack_inuse_bytes":          "Bytes of stacks in use.",
	"go_memstats_stack_sys_bytes":            "Bytes of stacks, as the system gave them.",
	"go_memstats_sys_bytes":                  "Bytes of address space that the runtime has of the system.",
	"go_mutex_wait_seconds_total":            "Time that goroutines waited for locks.",
	"go_scavenge_cpu_seconds_total":          "Processor time for giving memory back to the system.",
	"go_sched_latencies_seconds":             "Time that goroutines which could run waited for a thread.",
	"go_threads":                             "Threads that the runtime has made.",
	"process_cpu_seconds_system_total":       "Processor time in the kernel.",
	"process_cpu_seconds_total":              "Processor time.",
	"process_cpu_seconds_user_total":         "Processor time outside of the kernel.",
	"process_io_read_bytes_total":            "Bytes that were read, from anything.",
	"process_io_read_syscalls_total":         "System calls that read.",
	"process_io_storage_read_bytes_total":    "Bytes that were read from disks.",
	"process_io_storage_written_bytes_total": "Bytes that were written to disks.",
	"process_io_write_syscalls_total":        "System calls that wrote.",
	"process_io_written_bytes_total":         "Bytes that were written, to anything.",
	"process_major_pagefaults_total":         "Page faults that read from a disk.",
	"process_max_fds":                        "File descriptors that the process may open.",
	"process_minor_pagefaults_total":         "Page faults that read from no disk.",
	"process_num_threads":                    "Threads of the process.",
	"process_open_fds":                       "File descriptors that are open.",
	"process_resident_memory_anon_bytes":     "Memory that belongs to no file: the heap and stacks.",
	"process_resident_memory_bytes":          "Memory of the process in the machine.",
	"process_resident_memory_file_bytes":     "Memory of files that are mapped.",
	"process_resident_memory_peak_bytes":     "The most memory that the process had in the machine.",
	"process_resident_memory_shared_bytes":   "Memory that is shared with other processes.",
	"process_start_time_seconds":             "When the process started, in seconds since 1970.",
	"process_virtual_memory_bytes":           "Address space of the process.",
	"process_virtual_memory_peak_bytes":      "The most address space that the process had.",
}
