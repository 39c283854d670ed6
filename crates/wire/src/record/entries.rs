//! The macros that declare frames, and how they work.
//!
//! [`record!`](crate::record!) takes a list apart, one entry after the other. Each adds something to
//! six lists: fields of the struct, their names, the names of entries as constants, parts of the
//! layout, and the code of the reader and of the writer. The rule for the end puts them together.

/// Declares a whole frame body: a [`record!`](crate::record!) with `parse` and `write`.
#[macro_export]
macro_rules! frame {
    ($(#[$attr:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? { $($entries:tt)* }) => {
        $crate::record! { $(#[$attr])* $vis struct $name $(<$life>)? { $($entries)* } }
        $crate::frame! { @body $vis $name $(<$life>)? }
    };
    ($vis:vis impl $name:ident $(<$life:lifetime>)? as $($rest:tt)*) => {
        $crate::record! { impl $name $(<$life>)? as $($rest)* }
        $crate::frame! { @body $vis $name $(<$life>)? }
    };
    (@body $vis:vis $name:ident $(<$life:lifetime>)?) => {
        impl $(<$life>)? $name $(<$life>)? {
            /// Appends the frame body.
            $vis fn write(&self, out: &mut Vec<u8>) {
                $crate::Record::put(self, &mut $crate::Writer::new(out));
            }

            /// Reads a frame body.
            ///
            /// # Errors
            /// [`Malformed`](ncmesh_wire::Malformed) if it is not as its declaration says.
            $vis fn parse(body: &$($life)? [u8]) -> Result<Self, $crate::Malformed> {
                $crate::Record::from_body(body)
            }
        }
    };
}

/// Declares a part of frame bodies; [the module](mod@crate::record) says how.
#[macro_export]
macro_rules! record {
    // ---- the front: (definition, lifetime, the six lists), reader and writer, entries

    ($(#[$attr:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? { $($entries:tt)* }) => {
        $crate::record! {
            @next (
                [struct { $(#[$attr])* $vis struct $name $(<$life>)? } $name $(<$life>)?]
                [$($life)? 'r] {} {} {} {} {} {}
            )
            [r w] $($entries)*
        }
    };
    (
        impl $type:ident $(<$life:lifetime>)? $(with $with:ident: $with_type:ty)?
            as $name:ident { $($pattern:tt)* } { $($entries:tt)* }
    ) => {
        $crate::record! {
            impl $type $(<$life>)? $(with $with: $with_type)?
                as $name { $($pattern)* } => $name { $($pattern)* } { $($entries)* }
        }
    };
    (
        impl $type:ident $(<$life:lifetime>)? $(with $with:ident: $with_type:ty)?
            as $name:ident { $($pattern:tt)* } => $built:ident { $($build:tt)* } { $($entries:tt)* }
    ) => {
        $crate::record! {
            @next (
                [
                    impl $type $(<$life>)?, $($with, $with_type)?;
                    { $name { $($pattern)* } } { $built { $($build)* } }
                ]
                [$($life)? 'r] {} {} {} {} {} {}
            )
            [r w] $($entries)*
        }
    };

    // ---- the end

    (
        @next (
            [struct { $($item:tt)* } $type:ty] $life:tt {$($fields:tt)*} {$($names:tt)*}
            $consts:tt $parts:tt $read:tt $write:tt
        )
        $rw:tt
    ) => {
        $($item)* {
            $($fields)*
        }

        $crate::record! {
            @next (
                [impl $type, ; { Self { $($names)* } } { Self { $($names)* } }]
                $life {} {} $consts $parts $read $write
            )
            $rw
        }
    };
    (
        @next (
            [impl $type:ty, ; { $($pattern:tt)* } { $($build:tt)* }]
            [$life:lifetime $($_:lifetime)?] $fields:tt $names:tt
            {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        )
        [$r:ident $w:ident]
    ) => {
        impl<$life> $crate::Record<$life> for $type {
            const PARTS: &'static [$crate::layout::Part] = {
                $($consts)*
                &[$($parts)*]
            };

            #[inline]
            fn read($r: &mut $crate::Reader<$life>) -> Result<Self, $crate::Malformed> {
                #[allow(unused_imports, reason = "only checks compare quantities")]
                use $crate::record::Quantity as _;
                $($read)*
                Ok($($build)*)
            }

            #[inline]
            fn put(&self, $w: &mut $crate::Writer<'_>) {
                let $($pattern)* = self;
                $($write)*
            }
        }
    };
    (
        @next (
            [impl $type:ty, $with:ident, $with_type:ty; { $($pattern:tt)* } { $($build:tt)* }]
            $life:tt $fields:tt $names:tt
            {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        )
        [$r:ident $w:ident]
    ) => {
        impl $type {
            /// Its description.
            pub(crate) const PARTS: &'static [$crate::layout::Part] = {
                $($consts)*
                &[$($parts)*]
            };

            fn read_with(
                $r: &mut $crate::Reader<'_>,
            ) -> Result<(Self, $with_type), $crate::Malformed> {
                #[allow(unused_imports, reason = "only checks compare quantities")]
                use $crate::record::Quantity as _;
                $($read)*
                Ok(($($build)*, $with))
            }

            fn put_with(&self, $with: $with_type, $w: &mut $crate::Writer<'_>) {
                let $($pattern)* = self;
                let $with = &$with;
                $($write)*
            }
        }
    };

    // ---- what an entry adds

    (
        @add (
            $head:tt $life:tt {$($fields:tt)*} {$($names:tt)*}
            {$($consts:tt)*} {$($parts:tt)*} {$($read:tt)*} {$($write:tt)*}
        )
        $rw:tt {$($field:tt)*} {$($name:tt)*} {$($const:tt)*} {$($part:tt)*} {$($reads:tt)*}
        {$($writes:tt)*} $($rest:tt)*
    ) => {
        $crate::record! {
            @next (
                $head $life {$($fields)* $($field)*} {$($names)* $($name)*}
                {$($consts)* $($const)*} {$($parts)* $($part)*}
                {$($read)* $($reads)*} {$($write)* $($writes)*}
            )
            $rw $($rest)*
        }
    };

    // ---- a byte of bits

    (
        @next $all:tt [$r:ident $w:ident]
        byte { $(
            $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty = $mark:expr
                $(=> $value:expr)?
        ),+ $(,)? }
        $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$($(#[doc = $doc])* $vis $name: $type,)+}
            {$($name,)+}
            {$($crate::record! { @const $name $mark })+}
            {$crate::layout::Part::Byte(&[$(
                ($mark).bit::<$type>($crate::record::text(concat!($($doc),*)))
            ),+]),}
            {
                let byte = $r.u8()?;
                if byte & !(0 $(| const { $mark }.mask())+) != 0 {
                    return Err($crate::Malformed);
                }
                $(let $name = const { $mark }.read_bits::<$type>(byte)?;)+
            }
            {
                $($(let $name: &$type = &$value;)?)+
                $w.u8(0 $(| const { $mark }.place::<$type>($name))+);
            }
            $($rest)*
        }
    };

    // ---- rules

    (@next $all:tt $rw:tt check $rule:ident($a:ident, $b:ident), $($rest:tt)*) => {
        $crate::record! {
            @add $all $rw {} {} {}
            {$crate::layout::Part::Check($crate::record! { @rule $rule $a $b }),}
            {if !$crate::record! { @holds $rule $a $b } {
                return Err($crate::Malformed);
            }}
            {} $($rest)*
        }
    };
    (@next $all:tt $rw:tt check $holds:expr => $check:expr, $($rest:tt)*) => {
        $crate::record! {
            @add $all $rw {} {} {}
            {$crate::layout::Part::Check($check),}
            {if !($holds) {
                return Err($crate::Malformed);
            }}
            {} $($rest)*
        }
    };
    (@rule differ $a:ident $b:ident) => { $crate::layout::Check::Differ($a, $b) };
    (@holds differ $a:ident $b:ident) => { ($a.quantity() != $b.quantity()) };
    (@rule at_most $a:ident $b:ident) => { $crate::layout::Check::AtMost($a, $b) };
    (@holds at_most $a:ident $b:ident) => { ($a.quantity() <= $b.quantity()) };
    (@rule excludes $a:ident $b:ident) => { $crate::layout::Check::Excludes($a, $b) };
    (@holds excludes $a:ident $b:ident) => { ($a.quantity() == 0 || $b.quantity() == 0) };
    (@rule implies $a:ident $b:ident) => { $crate::layout::Check::Implies($a, $b) };
    (@holds implies $a:ident $b:ident) => { ($a.quantity() == 0 || $b.quantity() != 0) };

    // ---- fields whose form depends on an earlier one

    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty as long as $len:ident
            = $mark:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: $type,}
            {$name,}
            {$crate::record! { @const $name $mark }}
            {($mark).bytes(
                $crate::layout::Length::Field($len),
                $crate::record::text(concat!($($doc),*)),
            ),}
            {let $name: $type = $r.bytes(usize::from($len))?.into();}
            {$w.bytes(&$name[..usize::from(*$len)]);}
            $($rest)*
        }
    };
    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Vec<$type:ty> as many as $count:ident
            = $mark:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: Vec<$type>,}
            {$name,}
            {}
            {$crate::layout::Part::Repeat(
                $crate::layout::Count::Field($count),
                $crate::record! { @items $type, concat!($($doc),*), $mark },
            ),}
            {let $name = $crate::record::many($r, usize::from($count), |$r| {
                const { $mark }.read::<$type>($r)
            })?;}
            {
                let items = $name.iter().take(usize::from(*$count));
                items.for_each(|item| const { $mark }.put::<$type>(item, $w));
            }
            $($rest)*
        }
    };
    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Vec<$type:ty>
            to the end($min:expr, $max:expr) $(= $mark:expr)?, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: Vec<$type>,}
            {$name,}
            {}
            {$crate::layout::Part::Repeat(
                $crate::layout::Count::ToEnd($min, $max),
                $crate::record! { @items $type, concat!($($doc),*) $(, $mark)? },
            ),}
            {let $name = $crate::record::to_end($r, $min, $max, |$r| {
                $crate::record! { @read $r $type $(, $mark)? }
            })?;}
            {$name.iter().for_each(|item| {
                $crate::record! { @put item $w $type $(, $mark)? }
            });}
            $($rest)*
        }
    };
    (
        @next $all:tt $rw:tt
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Option<$type:ty> where not $there:ident
            $(= $mark:expr)?, $($rest:tt)*
    ) => {
        $crate::record! {
            @where $all $rw 0 $there $(#[doc = $doc])* $vis $name $type, [$($mark)?] $($rest)*
        }
    };
    (
        @next $all:tt $rw:tt
        $(#[doc = $doc:literal])* $vis:vis $name:ident : Option<$type:ty> where $there:ident
            $(= $mark:expr)?, $($rest:tt)*
    ) => {
        $crate::record! {
            @where $all $rw 1 $there $(#[doc = $doc])* $vis $name $type, [$($mark)?] $($rest)*
        }
    };
    (
        @where $all:tt [$r:ident $w:ident] $is:literal $there:ident
        $(#[doc = $doc:literal])* $vis:vis $name:ident $type:ty, [$($mark:expr)?] $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: Option<$type>,}
            {$name,}
            {}
            {$crate::layout::Part::When(
                $crate::layout::Is($there, $is),
                $crate::record! { @items $type, concat!($($doc),*) $(, $mark)? },
            ),}
            {let $name = if u64::from($there) == $is {
                Some($crate::record! { @read $r $type $(, $mark)? }?)
            } else {
                None
            };}
            {if let Some(item) = $name {
                $crate::record! { @put item $w $type $(, $mark)? }
            }}
            $($rest)*
        }
    };

    // ---- fields that something else reads and writes

    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty
            as $by:ident { $($of:ident),* }, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: $type,}
            {$name,}
            {}
            {$crate::layout::Part::Include($by::PARTS),}
            {let $name = $by { $($of),* }.read($r)?;}
            {$by { $($of: *$of),* }.put($name, $w);}
            $($rest)*
        }
    };
    (
        @next $all:tt [$r:ident $w:ident]
        $a:ident, $b:ident as $by:ident { $($of:ident),* }, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w] {} {} {}
            {$crate::layout::Part::Include($by::PARTS),}
            {let ($a, $b) = $by { $($of),* }.read($r)?;}
            {$by { $($of: *$of),* }.put($a, $b, $w);}
            $($rest)*
        }
    };

    // ---- fields

    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $name:ident : $type:ty = $mark:expr => $value:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w] {} {}
            {$crate::record! { @const $name $mark }}
            {($mark).part::<$type>($crate::record::text(concat!($($doc),*))),}
            {let $name = const { $mark }.read::<$type>($r)?;}
            {
                let $name: &$type = &$value;
                const { $mark }.put::<$type>($name, $w);
            }
            $($rest)*
        }
    };
    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty = $mark:expr, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: $type,}
            {$name,}
            {$crate::record! { @const $name $mark }}
            {($mark).part::<$type>($crate::record::text(concat!($($doc),*))),}
            {let $name = const { $mark }.read::<$type>($r)?;}
            {const { $mark }.put::<$type>($name, $w);}
            $($rest)*
        }
    };
    (
        @next $all:tt [$r:ident $w:ident]
        $(#[doc = $doc:literal])* $vis:vis $name:ident : $type:ty, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w]
            {$(#[doc = $doc])* $vis $name: $type,}
            {$name,}
            {}
            {$crate::layout::Part::Include(<$type as $crate::Record>::PARTS),}
            {let $name = <$type as $crate::Record>::read($r)?;}
            {$crate::Record::put($name, $w);}
            $($rest)*
        }
    };
    (
        @next $all:tt [$r:ident $w:ident] $type:ident { $($field:ident),+ $(,)? }, $($rest:tt)*
    ) => {
        $crate::record! {
            @add $all [$r $w] {} {} {}
            {$crate::layout::Part::Include(<$type as $crate::Record>::PARTS),}
            {let $type { $($field),+ } = <$type as $crate::Record>::read($r)?;}
            {$crate::Record::put(&$type { $($field: *$field),+ }, $w);}
            $($rest)*
        }
    };

    // ---- what several entries need

    (@const $name:ident $mark:expr) => {
        #[allow(dead_code, non_upper_case_globals, reason = "named as the field; rules use some")]
        const $name: &str = ($mark).name;
    };
    (@items $type:ty, $doc:expr, $mark:expr) => {
        &[($mark).part::<$type>($crate::record::text($doc))]
    };
    (@items $type:ty, $doc:expr) => {
        <$type as $crate::Record>::PARTS
    };
    (@read $r:ident $type:ty, $mark:expr) => {
        const { $mark }.read::<$type>($r)
    };
    (@read $r:ident $type:ty) => {
        <$type as $crate::Record>::read($r)
    };
    (@put $item:ident $w:ident $type:ty, $mark:expr) => {
        const { $mark }.put::<$type>($item, $w)
    };
    (@put $item:ident $w:ident $type:ty) => {
        $crate::Record::put($item, $w)
    };
}
