# Translates the UCI configuration `ncmesh` into node.toml. Needs OpenWrt's /lib/functions.sh.
#
# Sections and options have the names that node.toml has; routes and ports are sections of the types
# `route` and `port`.
# The daemon checks the values; its errors name the line.
# shellcheck shell=sh

# Prints a string of TOML.
toml_string() {
	printf '"%s"' "$(printf '%s' "$1" | tr -d '\000-\037' | sed 's/[\\"]/\\&/g')"
}

# Prints an option of a section as KEY = VALUE, if it is set. Kinds: string, number, bool.
toml_option() {
	local section="$1" key="$2" kind="$3" value
	config_get value "$section" "$key"
	[ -n "$value" ] || return 0
	case "$kind:$value" in
	bool:1 | bool:on | bool:true | bool:yes) value=true ;;
	bool:*) value=false ;;
	# Anything else than a number stays a string, which the daemon refuses with its line.
	number:*[!0-9.]* | number:*.*.*) value="$(toml_string "$value")" ;;
	number:*) ;;
	*) value="$(toml_string "$value")" ;;
	esac
	printf '%s = %s\n' "$key" "$value"
}

# Prints the items of a list, each with a comma.
toml_item() {
	toml_string "$1"
	printf ', '
}

# Prints an option that is a list as KEY = [...], if it is set.
toml_list() {
	local items
	items="$(config_list_foreach "$1" "$2" toml_item)"
	[ -z "$items" ] || printf '%s = [%s]\n' "$2" "${items%, }"
}

# Prints the header of a section and returns success, if the configuration has the section.
toml_section() {
	local type
	config_get type "$1" TYPE
	[ -n "$type" ] && printf '\n[%s]\n' "$1"
}

toml_route() {
	local prefix via
	config_get prefix "$1" prefix
	config_get via "$1" via
	case "$via" in
	'' | *[!0-9]*) via="$(toml_string "$via")" ;;
	esac
	printf '%s = %s\n' "$(toml_string "$prefix")" "$via"
}

# Prints the options of a radio or a port, besides its kind.
toml_interface() {
	toml_option "$1" interface string
	toml_option "$1" ethertype number
	toml_option "$1" port number
	toml_option "$1" broadcast string
	toml_option "$1" group string
	toml_list "$1" peers
	toml_option "$1" dscp number
	toml_option "$1" rate string
	toml_option "$1" airtime_share number
	toml_option "$1" broadcast_rate string
	toml_option "$1" mtu number
}

toml_port() {
	printf '\n[[port]]\n'
	toml_option "$1" name string
	toml_option "$1" kind string
	toml_interface "$1"
}

# Prints node.toml. Call `config_load ncmesh` first.
node_toml() {
	printf '# Made from /etc/config/ncmesh at each start.\n'
	if toml_section node; then
		toml_option node id number
		toml_option node name string
		toml_option node key_file string
		toml_option node state_dir string
		toml_option node log string
	fi
	if toml_section radio; then
		local kind
		config_get kind radio kind
		# Files from before there were kinds are of nodes that send UDP.
		case "$kind" in
		'') printf 'kind = "udp"\n' ;;
		auto) ;;
		*) toml_option radio kind string ;;
		esac
		toml_interface radio
	fi
	config_foreach toml_port port
	if toml_section limits; then
		toml_option limits profile string
	fi
	if toml_section inbox; then
		toml_option inbox dir string
		toml_option inbox max_bytes string
		toml_option inbox reserve string
		toml_list inbox allow_from
		toml_option inbox keep_days number
	fi
	if toml_section fleet; then
		toml_option fleet model string
		toml_option fleet version_file string
		toml_option fleet name string
		toml_option fleet channel string
		toml_list fleet keys
		toml_option fleet need number
		toml_list fleet operators
		toml_option fleet dir string
		toml_option fleet max_bytes string
		toml_list fleet stage
		toml_list fleet apply
		toml_list fleet confirm
		toml_list fleet rollback
		toml_option fleet operator_key string
	fi
	if toml_section tunnel; then
		toml_option tunnel scheme string
		toml_option tunnel device string
		toml_list tunnel address
		toml_list tunnel announce
		toml_list tunnel accept
		toml_option tunnel mtu number
		toml_option tunnel clamp_mss bool
		toml_option tunnel padding bool
		toml_option tunnel queue number
		printf '\n[tunnel.routes]\n'
		config_foreach toml_route route
	fi
}
