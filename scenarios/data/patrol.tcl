# Made by movement.py.
$node_(0) set X_ 0.0
$node_(0) set Y_ 0.0
$node_(0) set Z_ 0.0
$node_(1) set X_ 150.0
$node_(1) set Y_ 0.0
$node_(1) set Z_ 0.0
$node_(2) set X_ 300.0
$node_(2) set Y_ 0.0
$node_(2) set Z_ 0.0
$node_(3) set X_ 450.0
$node_(3) set Y_ 0.0
$node_(3) set Z_ 0.0
$node_(4) set X_ 30.0
$node_(4) set Y_ 0.0
$node_(4) set Z_ 0.0
$ns_ at 5.0 "$node_(4) setdest 450.0 40.0 8.0"
$ns_ at 70.0 "$node_(4) setdest 30.0 40.0 8.0"
