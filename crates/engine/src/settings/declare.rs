//! The macros that declare settings.

/// Declares the settings of a section: see [`settings`](mod@crate::settings).
#[macro_export]
macro_rules! settings {
    // Every setting has a default, so the section has one.
    (
        $(#[$($attribute:tt)*])*
        $visible:vis struct $name:ident {
            $($(#[$($doc:tt)*])*
            $seen:vis $key:ident: $type:ty = $default:expr $(, $word:ident $value:expr)*;)*
        }
    ) => {
        impl Default for $name {
            fn default() -> Self {
                Self { $($key: $default),* }
            }
        }

        $crate::settings! {
            @section
            $(#[$($attribute)*])*
            $visible struct $name {
                $($(#[$($doc)*])*
                $seen $key: $type = [$default] $(, $word $value)*;)*
            }
        }
    };
    (
        $(#[$($attribute:tt)*])*
        $visible:vis struct $name:ident {
            $($(#[$($doc:tt)*])*
            $seen:vis $key:ident: $type:ty $(= $default:expr)? $(, $word:ident $value:expr)*;)*
        }
    ) => {
        $crate::settings! {
            @section
            $(#[$($attribute)*])*
            $visible struct $name {
                $($(#[$($doc)*])*
                $seen $key: $type = [$($default)?] $(, $word $value)*;)*
            }
        }
    };
    (
        @section
        $(#[$($attribute:tt)*])*
        $visible:vis struct $name:ident {
            $($(#[$($doc:tt)*])*
            $seen:vis $key:ident: $type:ty = [$($default:expr)?] $(, $word:ident $value:expr)*;)*
        }
    ) => {
        $(#[$($attribute)*])*
        $visible struct $name {
            $(
                $(#[$($doc)*])*
                $(#[doc = concat!("\n\nDefault: `", stringify!($default), "`.")])?
                $(#[doc = concat!("\n", stringify!($word), " `", stringify!($value), "`.")])*
                $seen $key: $type,
            )*
        }

        const _: () = {
            use $crate::settings::{Declared, KeyOf, Refused, Section, Setting, Value};
            use $crate::settings::serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};

            /// The declarations, under the names of the settings.
            struct Declarations {
                $($key: Setting<$type>,)*
            }

            fn declarations() -> Declarations {
                Declarations {
                    $($key: Setting::<$type>::new(
                        stringify!($key),
                        concat!($($crate::settings!(@doc $($doc)*)),*),
                    )$(.default($default))?$(.$word($value))*,)*
                }
            }

            impl Section for $name {
                const KEYS: &'static [&'static str] = &[$(stringify!($key)),*];

                fn settings() -> Vec<Declared> {
                    let all = declarations();
                    vec![$(all.$key.declared()),*]
                }

                fn check(&self) -> Result<(), Refused> {
                    let number = |key: &str| match key {
                        $(stringify!($key) => Value::number(&self.$key),)*
                        _ => None,
                    };
                    let all = declarations();
                    $(all.$key.check(&self.$key, number)?;)*
                    Ok(())
                }
            }

            struct Reader;

            impl<'de> Visitor<'de> for Reader {
                type Value = $name;

                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("a table of keys and values")
                }

                fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<$name, A::Error> {
                    let all = declarations();
                    $(let mut $key = None;)*
                    while let Some(key) = map.next_key_seed(KeyOf($name::KEYS))? {
                        match key {
                            $(stringify!($key) => $key = Some(map.next_value_seed(&all.$key)?),)*
                            // A key that is misspelled must not leave the default in force
                            // unnoticed.
                            other => return Err(A::Error::unknown_field(other, $name::KEYS)),
                        }
                    }

                    let section = $name {
                        $($key: match $key.or(all.$key.into_default()) {
                            Some(value) => value,
                            None => return Err(A::Error::missing_field(stringify!($key))),
                        },)*
                    };

                    section.check().map_err(A::Error::custom)?;
                    Ok(section)
                }
            }

            impl<'de> Deserialize<'de> for $name {
                fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                    deserializer.deserialize_struct(stringify!($name), Self::KEYS, Reader)
                }
            }
        };
    };
    (@doc doc = $text:literal) => { $text };
    (@doc $($other:tt)*) => { "" };
}

/// Declares names to choose from. The enum can be the type of a setting.
///
/// ```
/// use ncmesh_engine::settings::Value;
///
/// ncmesh_engine::choices! {
///     /// Order in which nodes send.
///     #[derive(Clone, Copy, Debug, Default, PartialEq)]
///     pub enum Order {
///         /// By weight.
///         #[default]
///         Weight = "weight",
///         /// At random.
///         Random = "random",
///     }
/// }
///
/// assert_eq!(Order::Random.name(), "random");
/// assert_eq!(Order::from_toml("weight".into()), Ok(Order::Weight));
/// ```
#[macro_export]
macro_rules! choices {
    (
        $(#[$($attribute:tt)*])*
        $visible:vis enum $name:ident {
            $($(#[$($doc:tt)*])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$($attribute)*])*
        $visible enum $name {
            $($(#[$($doc)*])* $variant,)*
        }

        impl $name {
            /// Returns its name in configurations.
            #[must_use]
            $visible fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl $crate::settings::serde::Serialize for $name {
            fn serialize<S: $crate::settings::serde::Serializer>(
                &self,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> $crate::settings::serde::Deserialize<'de> for $name {
            fn deserialize<D: $crate::settings::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> Result<Self, D::Error> {
                $crate::settings::read_choice(deserializer)
            }
        }

        impl $crate::settings::Value for $name {
            const KINDS: &'static [$crate::settings::Kind] = &[$crate::settings::Kind::Text];
            const CHOICES: &'static [&'static str] = &[$($text),*];

            fn from_toml(
                value: $crate::settings::Toml,
            ) -> Result<Self, $crate::settings::Mismatch> {
                let name = $crate::settings::choice(&value, Self::CHOICES)?;
                let mut all = [$(Self::$variant),*].into_iter();
                all.find(|one| one.name() == name)
                    .ok_or_else(|| $crate::settings::Mismatch::Choice(String::new()))
            }

            fn to_toml(&self) -> Option<$crate::settings::Toml> {
                Some(self.name().into())
            }
        }
    };
}
