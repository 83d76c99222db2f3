"""The script of `VMTasks.dd_load_test`: prints charts of a server's speed as JSON."""

#: Runs in /bin/sh with common programs. `DD_SIZE_MB` and `DD_PROCESSES` change file and load.
DD_SCRIPT = r"""
size=${DD_SIZE_MB:-50}
processes=${DD_PROCESSES:-5}
file=$(mktemp) || exit 1
trap 'rm -f "$file" "$file.gz" "$file.go"' EXIT

for program in awk dd df gzip grep mktemp; do
    command -v $program > /dev/null || { echo "the server lacks $program" >&2; exit 1; }
done

uptime_of() { awk '{print $1}' /proc/uptime; }
seconds() {
    begin=$(uptime_of)
    "$@" > /dev/null 2>&1 || { echo "failed: $*" >&2; exit 1; }
    awk -v a="$begin" -v b="$(uptime_of)" 'BEGIN {printf "%.2f", b - a}'
}
# busy and total time of all cores, in ticks
cpu_ticks() {
    awk '/^cpu / {busy = $2 + $3 + $4 + $7 + $8; print busy, busy + $5 + $6}' /proc/stat
}
cpu_used() {
    # without the brackets, > would write to a file
    echo "$1 $2 $(cpu_ticks)" |
        awk '{d = $4 - $2; printf("%.1f", (d > 0) ? 100 * ($3 - $1) / d : 0)}'
}
memory_used() {
    awk '/^MemTotal/ {t = $2} /^MemAvailable/ {a = $2} END {printf("%.1f", 100 * (t - a) / t)}' \
        /proc/meminfo
}
disk_used() { df -P / | awk 'NR == 2 {sub("%", "", $5); print $5}'; }

write=$(seconds dd if=/dev/zero of="$file" bs=1048576 count="$size" conv=fsync) || exit 1
read=$(seconds dd if="$file" of=/dev/null bs=1048576) || exit 1
pack=$(seconds gzip -c "$file") || exit 1

touch "$file.go"
cpu="" memory="" disk="" comma=""
number=1
while [ "$number" -le "$processes" ]; do
    while [ -e "$file.go" ]; do
        dd if=/dev/urandom bs=1048576 count=5 2> /dev/null | gzip > /dev/null
    done &
    before=$(cpu_ticks)
    sleep 1
    cpu="$cpu$comma[$number, $(cpu_used $before)]"
    memory="$memory$comma[$number, $(memory_used)]"
    disk="$disk$comma[$number, $(disk_used)]"
    comma=", "
    number=$((number + 1))
done
rm -f "$file.go"
wait

times="[\"write\", $write], [\"read\", $read], [\"gzip\", $pack]"
cat <<END
{"additive": [
  {"title": "Write, read and gzip of a file", "description": "$size MiB, seconds",
   "chart_plugin": "StackedArea", "data": [$times]},
  {"title": "Statistics of write, read and gzip", "chart_plugin": "StatsTable", "data": [$times]}],
 "complete": [
  {"title": "Use of the server by number of processes that compress", "chart_plugin": "Lines",
   "axis_label": "processes", "label": "%",
   "data": [["CPU", [$cpu]], ["memory", [$memory]], ["disk", [$disk]]]}]}
END
"""
